//! The macro that makes tests of the functions of this crate.

/// Makes a `#[test]` of each function of the named groups for an engine: `engine_tests!(MyEngine)` for all groups,
/// `engine_tests!(MyEngine: contract, tables)` for some. For several engines, each call lies in a module of its own.
#[macro_export]
macro_rules! engine_tests {
    ($engine:ty) => {
        $crate::engine_tests!($engine: contract, tables, model, conflicts);
    };
    ($engine:ty: $($group:ident),+) => {
        $($crate::engine_tests!(@$group $engine);)+
    };
    (@contract $engine:ty) => {
        $crate::engine_tests!(@tests contract, $engine: [
            a_handle_is_good_in_the_transaction_that_has_found_it_alone,
            a_transaction_that_only_reads_commits_with_the_largest_tid_that_it_read,
            transactions_for_which_an_epoch_has_no_tids_left_wait_for_nothing,
            a_record_that_the_transaction_has_deleted_is_written_no_more,
            a_row_of_other_words_than_it_needs_is_refused,
            what_is_loaded_in_advance_is_not_read,
            what_a_transaction_loads_for_its_changes_is_not_read,
            ids_of_stores_are_used_once_and_dropped_stores_abort,
            what_ended_sessions_have_counted_stays,
            a_peek_sees_what_is_committed_and_own_writes,
            what_was_read_names_its_epoch,
            a_dropped_store_has_no_keys,
            a_write_of_a_table_that_cannot_be_is_not_replayed,
            a_row_that_comes_late_was_there_all_the_time,
        ]);
        $crate::engine_tests!(@tests epochs, $engine: [
            a_row_says_in_which_epoch_it_was_committed,
            rows_that_the_transaction_has_written_say_no_epoch,
            a_peek_says_the_epochs_of_the_present,
            a_snapshot_says_the_epochs_of_what_it_shows,
            a_row_that_is_overwritten_meanwhile_says_the_epoch_of_its_words,
            rows_that_were_replayed_say_the_epochs_of_the_log,
        ]);
        $crate::engine_tests!(@tests replay, $engine: [
            any_order_on_any_number_of_threads_leaves_the_same_rows,
            words_that_are_folded_at_any_frontier_leave_the_same_rows,
            words_without_their_row_are_damage,
            words_without_their_row_are_damage_as_soon_as_it_cannot_come,
            words_outside_their_row_are_damage,
            a_long_log_on_threads_that_fold_leaves_its_rows,
            an_old_put_does_not_revive_a_deleted_key,
        ]);
    };
    (@tables $engine:ty) => {
        $crate::engine_tests!(@tests tables, $engine: [
            statements_change_tables_and_their_indexes,
            tables_and_indexes_are_made_refused_and_dropped,
            dynamic_tables_have_rows_without_a_rust_type,
            rows_are_taken_in_order_and_their_commits_end_waits,
        ]);
    };
    (@model $engine:ty) => {
        $crate::engine_tests!(@tests model, $engine: [
            tables_and_indexes_agree_with_a_model,
        ]);
    };
    (@conflicts $engine:ty) => {
        $crate::engine_tests!(@tests conflicts, $engine: [
            requests_of_several_threads_lose_no_update,
            of_a_session_and_a_request_that_write_one_row_one_commits,
            a_submitted_request_reads_what_was_committed,
            statements_of_several_calls_commit_together,
            nobody_sees_a_row_before_its_session_commits,
            write_skew_is_rejected,
            a_session_goes_on_in_another_thread,
            stale_reads_show_all_that_is_older_than_their_bound,
            consumers_of_several_threads_take_each_row_once,
            a_row_that_a_session_takes_is_passed_over_until_that_ends,
        ]);
    };
    (@tests $group:ident, $engine:ty: [$($test:ident,)+]) => {
        $(
            #[test]
            fn $test() {
                $crate::$group::$test::<$engine>();
            }
        )+
    };
}
