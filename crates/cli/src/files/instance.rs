//! Instances of several that are one, whose files are not changed, or copied, by themselves.

use std::path::Path;

use ensilo::{Database, Options};
use ensilo_islands::{InstanceNumber, instance_by_place, stored_instance};

/// What helps with one that is damaged.
pub(super) const RESTORE: &str = "restore a copy of all of them; with --instance-alone it is done to this one alone, which may leave \
                                  transactions over several instances in half";

/// Returns why a directory is not to be taken by itself: it has an instance of several that are one. `otherwise` says what helps.
///
/// Where it lies shows that, also if it is damaged. One that was put elsewhere says it itself, if it can be opened.
pub(super) fn refusal_of_instance(directory: &Path, otherwise: &str) -> Option<String> {
    let InstanceNumber { instance, instances } =
        instance_by_place(directory).or_else(|| instance_by_note(directory))?;
    Some(format!(
        "{} is instance {instance} of {instances}: an instance of several that are one, which counts together with the others alone: {otherwise}",
        directory.display()
    ))
}

fn instance_by_note(directory: &Path) -> Option<InstanceNumber> {
    let options: Options = Database::options().read_only(true).answer_while_loading(true);
    let stored = stored_instance(&options.open(directory).ok()?).ok()??;
    (stored.number.instances > 1).then_some(stored.number)
}
