//! A checker that decides whether a recorded history is serializable.
