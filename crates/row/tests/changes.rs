//! Changes of schemas: what they make of columns and of rows, what is refused, and the encoding for the catalog.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{column_type, table, value};
use ensilo_row::{
    Column, ColumnType, KeyBuf, Order, RowBuf, RowId, Schema, SchemaChange, SchemaError, SchemaHistory, Value,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// The epoch of the change with this number; the first has number 1.
const fn epoch_of(change: usize) -> u64 {
    10 * change as u64
}

fn accounts() -> Schema {
    Schema::builder("account")
        .column("id", ColumnType::U32)
        .column("name", ColumnType::FixedText { len_max: 8 })
        .nullable("note", ColumnType::Text)
        .column("balance", ColumnType::I32)
        .key([("id", Order::Ascending)])
        .index("by_name", [("name", Order::Descending)])
        .build()
        .unwrap()
}

/// A step of a change, chosen for whatever schema there is.
#[derive(Clone, Debug)]
enum Step {
    Add(ColumnType, bool, Value),
    Drop(Index),
    Rename(Index),
    Widen(Index, Index),
    AllowNull(Index),
    Reverse,
}

fn step() -> impl Strategy<Value = Step> {
    let add = (column_type(), any::<bool>()).prop_flat_map(|(column_type, nullable)| {
        value(column_type, nullable).prop_map(move |value| Step::Add(column_type, nullable, value))
    });
    prop_oneof![
        3 => add,
        1 => any::<Index>().prop_map(Step::Drop),
        1 => any::<Index>().prop_map(Step::Rename),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(column, wider)| Step::Widen(column, wider)),
        1 => any::<Index>().prop_map(Step::AllowNull),
        1 => Just(Step::Reverse),
    ]
}

/// The types that a column of type `from` may get.
fn wider_types(from: ColumnType) -> Vec<ColumnType> {
    use ColumnType as T;
    let some = [T::I16, T::I32, T::I64, T::I128, T::U16, T::U32, T::U64, T::U128, T::F64, T::Text, T::Bytes];
    let longer = (0..400).step_by(50).map(|len_max| T::FixedText { len_max });
    some.into_iter().chain(longer).chain([from]).filter(|to| from.widens_to(*to)).collect()
}

/// A schema that changes, and the rows of the model: of every row its values, which follow the changes.
struct Model {
    schema: Schema,
    history: SchemaHistory,
    rows: Vec<ModelRow>,
    names: usize,
}

struct ModelRow {
    key: KeyBuf,
    stored: RowBuf,
    epoch: u64,
    values: Vec<Value>,
}

impl Model {
    fn insert(&mut self, values: &[Value]) {
        let (mut key, mut stored) = (KeyBuf::new(), RowBuf::new());
        self.schema.encode_insert_key(values, || RowId(7), &mut key).unwrap();
        self.schema.encode_row(values, &mut stored).unwrap();
        let epoch = epoch_of(self.history.len());
        self.rows.push(ModelRow { key, stored, epoch, values: values.to_vec() });
    }

    fn column(&self, at: Index) -> &Column {
        at.get(self.schema.columns())
    }

    /// Makes a change of one step, if the schema takes it, of the schema and of the values of all rows.
    fn change(&mut self, step: &Step) {
        if self.schema.columns().is_empty() && !matches!(step, Step::Add(..)) {
            return;
        }
        self.names += 1;
        let fresh = format!("n{}", self.names);
        let change = SchemaChange::new();
        let names: Vec<_> = self.schema.columns().iter().map(|column| column.name.clone()).collect();
        let change = match step {
            Step::Add(column_type, false, value) => change.add(fresh, *column_type, value.clone()),
            Step::Add(column_type, true, value) => change.add_nullable(fresh, *column_type, value.clone()),
            Step::Drop(at) => change.drop_column(&self.column(*at).name),
            Step::Rename(at) => change.rename(&self.column(*at).name, fresh),
            Step::Widen(at, wider) => {
                let Column { name, column_type, .. } = self.column(*at);
                change.widen(name, *wider.get(&wider_types(*column_type)))
            }
            Step::AllowNull(at) => change.allow_null(&self.column(*at).name),
            Step::Reverse => change.order(names.iter().rev().cloned()),
        };
        let epoch = epoch_of(self.history.len() + 1);
        match self.history.changed(&self.schema, &change, epoch) {
            Ok((schema, history)) => (self.schema, self.history) = (schema, history),
            Err(SchemaError::ColumnInKey { .. } | SchemaError::RowTooLarge { .. }) => return,
            Err(error) => panic!("{step:?}: {error}"),
        }
        for row in &mut self.rows {
            match step {
                Step::Add(_, _, value) => row.values.push(value.clone()),
                Step::Drop(at) => drop(row.values.remove(at.index(names.len()))),
                Step::Reverse => row.values.reverse(),
                _ => {}
            }
        }
    }

    /// Returns the values of a row as the schema reads it now.
    fn read(&self, row: &ModelRow) -> Vec<Value> {
        let (mut values, mut converted) = (Vec::new(), RowBuf::new());
        if row.epoch >= self.history.since() {
            self.schema.decode_row(row.key.as_bytes(), &row.stored, &mut values).unwrap();
            return values;
        }
        self.history.convert(&self.schema, row.epoch, &row.stored, &mut converted).unwrap();
        self.schema.decode_row(row.key.as_bytes(), &converted, &mut values).unwrap();
        // As if it had been written now, to the last bit.
        let mut written = RowBuf::new();
        self.schema.encode_row(&values, &mut written).unwrap();
        assert_eq!(converted, written);
        values
    }
}

/// Floats that were widened are compared by value, all else by what it is.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Float64(wide), Value::Float32(narrow)) => {
            wide.is_nan() && narrow.is_nan() || *wide == f64::from(*narrow)
        }
        _ => one == other,
    }
}

proptest! {
    #[test]
    fn rows_of_every_schema_follow_its_changes((schema, rows) in table(3), steps in vec(step(), 0..8), bytes in vec(any::<u8>(), 0..200)) {
        let mut model = Model { schema, history: SchemaHistory::default(), rows: Vec::new(), names: 0 };
        let mut rows = rows.into_iter();
        model.insert(&rows.next().unwrap());
        for step in &steps {
            model.change(step);
            // A row of the schema in between, made of one that follows it.
            let values = model.read(&model.rows[0]);
            model.insert(&values);
        }
        for row in &model.rows {
            let values = model.read(row);
            prop_assert_eq!(values.len(), row.values.len());
            for (read, expected) in values.iter().zip(&row.values) {
                prop_assert!(is_same(read, expected), "{:?} {:?}", read, expected);
            }
        }
        // It comes back from the catalog as it was.
        let mut encoded = Vec::new();
        model.history.encode(&model.schema, &mut encoded);
        let (schema, history) = SchemaHistory::decode(&encoded).unwrap();
        let mut again = Vec::new();
        history.encode(&schema, &mut again);
        prop_assert_eq!(&encoded, &again);
        prop_assert_eq!(&schema, &model.schema);
        for len in 0..encoded.len() {
            prop_assert!(SchemaHistory::decode(&encoded[..len]).is_err(), "cut off at {}", len);
        }
        // Bytes that are no row of the schema, as of a row that is being overwritten.
        let mut garbage = RowBuf::new();
        garbage.set_bytes(&bytes);
        for epoch in (0..model.history.len()).map(epoch_of) {
            let _ = model.history.convert(&model.schema, epoch, &garbage, &mut RowBuf::new());
        }
    }

    #[test]
    fn bytes_that_are_no_history_never_panic(damage in any::<Index>(), byte in any::<u8>()) {
        let change = SchemaChange::new().add("level", ColumnType::U16, 7u8).drop_column("note");
        let (schema, history) = SchemaHistory::default().changed(&accounts(), &change, 5).unwrap();
        let mut encoded = Vec::new();
        history.encode(&schema, &mut encoded);
        *damage.get_mut(&mut encoded) = byte;
        if let Ok((schema, history)) = SchemaHistory::decode(&encoded) {
            let mut row = RowBuf::new();
            row.set_bytes(&[0; 100]);
            if history.since() > 0 {
                let _ = history.convert(&schema, 0, &row, &mut RowBuf::new());
            }
        }
    }
}

#[test]
fn what_cannot_be_changed_is_refused() {
    let refused = |change: SchemaChange| accounts().with_change(&change).unwrap_err();
    let change = SchemaChange::new;
    let in_key =
        |key: &str, column: &str| SchemaError::ColumnInKey { key: key.to_owned(), column: column.to_owned() };
    assert_eq!(refused(change().drop_column("id")), in_key("primary key", "id"));
    assert_eq!(refused(change().widen("id", ColumnType::U64)), in_key("primary key", "id"));
    assert_eq!(refused(change().allow_null("name")), in_key("by_name", "name"));
    // Also under another name.
    assert_eq!(refused(change().rename("name", "x").drop_column("x")), in_key("by_name", "x"));
    let unknown =
        |column: &str| SchemaError::UnknownColumn { table: "account".to_owned(), column: column.to_owned() };
    assert_eq!(refused(change().drop_column("x")), unknown("x"));
    assert_eq!(refused(change().drop_column("note").rename("note", "x")), unknown("note"));
    assert_eq!(refused(change().order(["id", "name", "note", "balance", "id"])), unknown("id"));
    for change in [
        change().add("note", ColumnType::U8, 1u8).drop_column("note"),
        change().rename("note", "balance").drop_column("balance"),
    ] {
        assert!(matches!(refused(change), SchemaError::DuplicateColumn { .. }));
    }
    assert_eq!(
        refused(change().order(["id", "name", "note"])),
        SchemaError::BadOrder { column: "balance".to_owned() }
    );
    let narrower =
        SchemaError::NotWider { column: "balance".to_owned(), from: ColumnType::I32, to: ColumnType::U64 };
    assert_eq!(refused(change().widen("balance", ColumnType::U64)), narrower);
    assert!(matches!(refused(change().rename("note", "id")), SchemaError::DuplicateColumn { .. }));
    assert!(matches!(refused(change().add("id", ColumnType::U8, 1u8)), SchemaError::DuplicateColumn { .. }));
    for (column_type, value) in
        [(ColumnType::U8, Value::from(256)), (ColumnType::U8, Value::Null), (ColumnType::Text, 1u8.into())]
    {
        let error = refused(change().add("x", column_type, value));
        assert!(matches!(&error, SchemaError::BadValue { column, .. } if column == "x"), "{error}");
    }
    // Widened afterwards, it is another column.
    let widened =
        accounts().with_change(&change().add("x", ColumnType::U8, 255u8).widen("x", ColumnType::U16));
    assert_eq!(widened.unwrap().columns()[4].column_type, ColumnType::U16);
}

#[test]
fn a_change_that_leads_to_the_same_columns_may_change_rows() {
    let is_changed = |change: SchemaChange| accounts().is_changed_by(&change).unwrap();
    let change = SchemaChange::new;
    assert!(!is_changed(change()));
    assert!(!is_changed(change().rename("balance", "x").rename("x", "balance")));
    assert!(!is_changed(change().order(["id", "name", "note", "balance"])));
    let anew = change().drop_column("balance").add("balance", ColumnType::I32, 0);
    assert_eq!(accounts().with_change(&anew).unwrap(), accounts());
    assert!(is_changed(anew));
    assert!(is_changed(change().allow_null("balance")));
    assert!(accounts().is_changed_by(&change().drop_column("x")).is_err());
}

#[test]
fn indexes_and_keys_keep_their_columns() {
    let order = ["balance", "note", "owner", "id"];
    let change = SchemaChange::new().rename("name", "owner").order(order);
    let schema = accounts().with_change(&change).unwrap();
    let names = |parts: &[ensilo_row::PartSchema]| {
        parts.iter().map(|part| (schema.columns()[part.column].name.clone(), part.order)).collect::<Vec<_>>()
    };
    assert_eq!(names(schema.key_parts()), [("id".to_owned(), Order::Ascending)]);
    assert_eq!(names(schema.index("by_name").unwrap().parts()), [("owner".to_owned(), Order::Descending)]);
}

#[test]
fn types_widen_to_those_that_have_all_their_values() {
    use ColumnType as T;
    let text = |len_max| T::FixedText { len_max };
    for (from, to, widens) in [
        (T::U8, T::U8, true),
        (T::U8, T::I8, false),
        (T::U8, T::I16, true),
        (T::I8, T::U128, false),
        (T::U64, T::I64, false),
        (T::U64, T::I128, true),
        (T::U128, T::I128, false),
        (T::I64, T::I32, false),
        (T::F32, T::F64, true),
        (T::F64, T::F32, false),
        (T::I32, T::F64, false),
        (text(3), text(300), true),
        (text(4), text(3), false),
        (text(4), T::Text, true),
        (T::Text, T::Bytes, false),
        (T::FixedBytes { len: 4 }, T::Bytes, true),
        (T::FixedBytes { len: 4 }, T::FixedBytes { len: 5 }, false),
        (T::Decimal { scale: 2 }, T::Decimal { scale: 3 }, false),
        (T::Bool, T::U8, false),
    ] {
        assert_eq!(from.widens_to(to), widens, "{from} to {to}");
    }
}
