//! Rows on their way to PostgreSQL's tables and back.

use ensilo::{Row, RowId};
use ensilo_bench::driver::Failure;
use ensilo_bench::tpcc::{
    Customer, District, History, Item, NewOrder, Order, OrderLine, RowSource, RowTarget, Stock, Warehouse,
};
use postgres::Row as SqlRow;
use postgres::binary_copy::BinaryCopyInWriter;

use super::super::copies::LoadedRows;
use super::values::SqlValue;
use crate::engine::{OrderedTable, Schema, failed};

/// A row with columns in PostgreSQL.
trait TableRow: Row {
    /// Their names, separated by commas.
    const NAMES: &'static str;

    /// Copies the row into its table.
    fn write(&self, writer: &mut BinaryCopyInWriter<'_>) -> Result<(), postgres::Error>;

    /// The row of these columns.
    fn read(row: &SqlRow) -> Result<Self, Failure>;
}

macro_rules! table_rows {
    ($($row:ident { $first:ident $(, $column:ident)* $(,)? })+) => {
        $(
            impl TableRow for $row {
                const NAMES: &'static str = concat!(stringify!($first) $(, ", ", stringify!($column))*);

                fn write(&self, writer: &mut BinaryCopyInWriter<'_>) -> Result<(), postgres::Error> {
                    writer.write(&[&self.$first.sql() $(, &self.$column.sql())*])
                }

                fn read(row: &SqlRow) -> Result<Self, Failure> {
                    let mut columns = 0..;
                    Ok(Self { $first: column(row, &mut columns)? $(, $column: column(row, &mut columns)?)* })
                }
            }
        )+

        /// Puts all rows into their tables, which are empty.
        pub(super) fn load(schema: &Schema, rows: &LoadedRows) -> Result<(), Failure> {
            $(load_table::<$row>(schema, rows)?;)+
            Ok(())
        }

        /// The rows of all tables.
        pub(super) fn bring_back(schema: &Schema) -> Result<LoadedRows, Failure> {
            let mut rows = LoadedRows::default();
            $(bring_table_back::<$row>(schema, &mut rows)?;)+
            Ok(rows.in_order())
        }
    };
}

table_rows! {
    Warehouse { w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd }
    District {
        d_w_id, d_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd, d_next_o_id,
    }
    Customer {
        c_w_id, c_d_id, c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip,
        c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt,
        c_delivery_cnt, c_data,
    }
    History { h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data }
    NewOrder { no_w_id, no_d_id, no_o_id }
    Order { o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local }
    OrderLine {
        ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity,
        ol_amount, ol_dist_info,
    }
    Item { i_id, i_im_id, i_name, i_price, i_data }
    Stock {
        s_w_id, s_i_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06,
        s_dist_07, s_dist_08, s_dist_09, s_dist_10, s_ytd, s_order_cnt, s_remote_cnt, s_data,
    }
}

fn load_table<T: TableRow>(schema: &Schema, rows: &LoadedRows) -> Result<(), Failure> {
    schema.copy(OrderedTable::of::<T>().name(), T::NAMES, |writer| {
        rows.for_each_row(&mut |row: T| row.write(writer).map_err(failed))
    })
}

fn bring_table_back<T: TableRow>(schema: &Schema, rows: &mut LoadedRows) -> Result<(), Failure> {
    schema.for_each(OrderedTable::of::<T>().name(), T::NAMES, |row| {
        let row = T::read(row)?;
        // The target numbers the rows of the history.
        rows.take(&row.insert_key(|| RowId(0)), &row)
    })
}

/// The next column of a row.
fn column<V: SqlValue>(row: &SqlRow, columns: &mut impl Iterator<Item = usize>) -> Result<V, Failure> {
    let at = columns.next().unwrap_or(usize::MAX);
    let value: V::Sql<'_> = row.try_get(at).map_err(failed)?;
    V::of_sql(value).ok_or_else(|| {
        let name = row.columns().get(at).map_or("", |column| column.name());
        Failure::Broken(format!("column {name}: a value is none of Ensilo's"))
    })
}
