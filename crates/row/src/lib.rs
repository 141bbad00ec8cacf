//! Column types, schemas, the order-preserving key codec and the row format.
