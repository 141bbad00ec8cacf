-- TPC-C's nine tables (clause 1.3) with the types and keys that a user of PostgreSQL would give them, and the two indexes that transactions
-- need beside the keys. Texts compare by their bytes, as Ensilo's do. The history has no key (clause 1.3.1).

CREATE TABLE warehouse (
    w_id integer PRIMARY KEY,
    w_name varchar(10) NOT NULL,
    w_street_1 varchar(20) NOT NULL,
    w_street_2 varchar(20) NOT NULL,
    w_city varchar(20) NOT NULL,
    w_state varchar(2) NOT NULL,
    w_zip varchar(9) NOT NULL,
    w_tax numeric(5, 4) NOT NULL,
    w_ytd numeric(18, 2) NOT NULL
);

CREATE TABLE district (
    d_w_id integer,
    d_id smallint,
    d_name varchar(10) NOT NULL,
    d_street_1 varchar(20) NOT NULL,
    d_street_2 varchar(20) NOT NULL,
    d_city varchar(20) NOT NULL,
    d_state varchar(2) NOT NULL,
    d_zip varchar(9) NOT NULL,
    d_tax numeric(5, 4) NOT NULL,
    d_ytd numeric(18, 2) NOT NULL,
    d_next_o_id integer NOT NULL,
    PRIMARY KEY (d_w_id, d_id)
);

CREATE TABLE customer (
    c_w_id integer,
    c_d_id smallint,
    c_id integer,
    c_first varchar(16) COLLATE "C" NOT NULL,
    c_middle varchar(2) NOT NULL,
    c_last varchar(16) COLLATE "C" NOT NULL,
    c_street_1 varchar(20) NOT NULL,
    c_street_2 varchar(20) NOT NULL,
    c_city varchar(20) NOT NULL,
    c_state varchar(2) NOT NULL,
    c_zip varchar(9) NOT NULL,
    c_phone varchar(16) NOT NULL,
    c_since timestamptz NOT NULL,
    c_credit varchar(2) NOT NULL,
    c_credit_lim numeric(18, 2) NOT NULL,
    c_discount numeric(5, 4) NOT NULL,
    c_balance numeric(18, 2) NOT NULL,
    c_ytd_payment numeric(18, 2) NOT NULL,
    c_payment_cnt integer NOT NULL,
    c_delivery_cnt integer NOT NULL,
    c_data varchar(500) NOT NULL,
    PRIMARY KEY (c_w_id, c_d_id, c_id)
);
CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first, c_id);

CREATE TABLE history (
    h_c_id integer NOT NULL,
    h_c_d_id smallint NOT NULL,
    h_c_w_id integer NOT NULL,
    h_d_id smallint NOT NULL,
    h_w_id integer NOT NULL,
    h_date timestamptz NOT NULL,
    h_amount numeric(18, 2) NOT NULL,
    h_data varchar(24) NOT NULL
);

CREATE TABLE new_order (
    no_w_id integer,
    no_d_id smallint,
    no_o_id integer,
    PRIMARY KEY (no_w_id, no_d_id, no_o_id)
);

CREATE TABLE orders (
    o_w_id integer,
    o_d_id smallint,
    o_id integer,
    o_c_id integer NOT NULL,
    o_entry_d timestamptz NOT NULL,
    o_carrier_id smallint,
    o_ol_cnt smallint NOT NULL,
    o_all_local boolean NOT NULL,
    PRIMARY KEY (o_w_id, o_d_id, o_id)
);
CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id);

CREATE TABLE order_line (
    ol_w_id integer,
    ol_d_id smallint,
    ol_o_id integer,
    ol_number smallint,
    ol_i_id integer NOT NULL,
    ol_supply_w_id integer NOT NULL,
    ol_delivery_d timestamptz,
    ol_quantity smallint NOT NULL,
    ol_amount numeric(18, 2) NOT NULL,
    ol_dist_info varchar(24) NOT NULL,
    PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)
);

CREATE TABLE item (
    i_id integer PRIMARY KEY,
    i_im_id integer NOT NULL,
    i_name varchar(24) NOT NULL,
    i_price numeric(18, 2) NOT NULL,
    i_data varchar(50) NOT NULL
);

CREATE TABLE stock (
    s_w_id integer,
    s_i_id integer,
    s_quantity smallint NOT NULL,
    s_dist_01 varchar(24) NOT NULL,
    s_dist_02 varchar(24) NOT NULL,
    s_dist_03 varchar(24) NOT NULL,
    s_dist_04 varchar(24) NOT NULL,
    s_dist_05 varchar(24) NOT NULL,
    s_dist_06 varchar(24) NOT NULL,
    s_dist_07 varchar(24) NOT NULL,
    s_dist_08 varchar(24) NOT NULL,
    s_dist_09 varchar(24) NOT NULL,
    s_dist_10 varchar(24) NOT NULL,
    s_ytd integer NOT NULL,
    s_order_cnt integer NOT NULL,
    s_remote_cnt integer NOT NULL,
    s_data varchar(50) NOT NULL,
    PRIMARY KEY (s_w_id, s_i_id)
);
