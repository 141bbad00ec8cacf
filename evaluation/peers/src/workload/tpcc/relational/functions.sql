-- The five transactions, a function each: what a terminal enters goes in, what it shows comes out.
--
-- Rows are locked in one order (warehouse, district, stocks by their keys, customers by theirs), so that transactions do not deadlock:
-- stocks are updated in the order of the arrays, which the client sorts.

-- The number of the customer with a last name: of several, ordered by first name, the one in the middle (clause 2.5.2.2).
CREATE FUNCTION customer_number(in_w_id integer, in_d_id smallint, in_last varchar) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    numbers integer[];
BEGIN
    SELECT array_agg(c_id ORDER BY c_first, c_id) INTO numbers FROM customer
        WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = in_last;
    RETURN numbers[(cardinality(numbers) + 1) / 2];
END $$;

-- New-order (clause 2.4.2.2). The arrays are the lines in the order of their stocks; `in_turns` tells the first line of a stock (1) from
-- further ones (2 and so on): a statement updates a row once.
CREATE FUNCTION tpcc_new_order(
    in_w_id integer, in_d_id smallint, in_c_id integer, in_entered timestamptz,
    in_numbers smallint[], in_supply_w_ids integer[], in_i_ids integer[], in_quantities smallint[], in_turns smallint[],
    OUT o_id integer, OUT last varchar, OUT credit varchar, OUT discount numeric, OUT warehouse_tax numeric, OUT district_tax numeric,
    OUT total numeric)
LANGUAGE plpgsql AS $$
DECLARE
    line_count smallint := cardinality(in_numbers);
    entered_count smallint;
BEGIN
    SELECT w_tax INTO STRICT warehouse_tax FROM warehouse WHERE w_id = in_w_id;
    SELECT c_last, c_credit, c_discount INTO STRICT last, credit, discount FROM customer
        WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = in_c_id;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = in_w_id AND d_id = in_d_id
        RETURNING d_next_o_id - 1, d_tax INTO STRICT o_id, district_tax;
    INSERT INTO orders VALUES (
        in_w_id, in_d_id, o_id, in_c_id, in_entered, NULL, line_count, in_w_id = ALL (in_supply_w_ids));
    INSERT INTO new_order VALUES (in_w_id, in_d_id, o_id);

    FOR this_turn IN 1..(SELECT max(turn) FROM unnest(in_turns) AS turn) LOOP
        UPDATE stock SET
            s_quantity = s_quantity - quantity + CASE WHEN s_quantity - quantity >= 10 THEN 0 ELSE 91 END,
            s_ytd = s_ytd + quantity,
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (supply_w_id <> in_w_id)::integer
        FROM unnest(in_supply_w_ids, in_i_ids, in_quantities, in_turns) AS line (supply_w_id, i_id, quantity, turn)
        WHERE s_w_id = supply_w_id AND s_i_id = i_id AND turn = this_turn;
    END LOOP;

    WITH entered AS (
        INSERT INTO order_line
        SELECT in_w_id, in_d_id, o_id, number, line.i_id, supply_w_id, NULL, quantity, i_price * quantity,
            CASE in_d_id
                WHEN 1 THEN s_dist_01 WHEN 2 THEN s_dist_02 WHEN 3 THEN s_dist_03 WHEN 4 THEN s_dist_04
                WHEN 5 THEN s_dist_05 WHEN 6 THEN s_dist_06 WHEN 7 THEN s_dist_07 WHEN 8 THEN s_dist_08
                WHEN 9 THEN s_dist_09 WHEN 10 THEN s_dist_10
            END
        FROM unnest(in_numbers, in_supply_w_ids, in_i_ids, in_quantities) AS line (number, supply_w_id, i_id, quantity)
            JOIN item ON item.i_id = line.i_id
            JOIN stock ON s_w_id = supply_w_id AND s_i_id = line.i_id
        RETURNING ol_amount
    )
    SELECT count(*), round(sum(ol_amount) * (1 - discount) * (1 + warehouse_tax + district_tax), 2)
        INTO entered_count, total FROM entered;
    IF entered_count = line_count THEN
        RETURN;
    END IF;
    -- Clause 2.4.2.3: the whole order is rolled back if it has an item that there is not.
    IF EXISTS (SELECT FROM unnest(in_i_ids) AS entered WHERE NOT EXISTS (SELECT FROM item WHERE i_id = entered)) THEN
        RAISE EXCEPTION 'item number is not valid' USING ERRCODE = 'TPCRB';
    END IF;
    RAISE EXCEPTION 'a stock is missing';
END $$;

-- Payment (clause 2.5.2.2), by a customer's number, or by their last name where the number is null.
CREATE FUNCTION tpcc_payment(
    in_w_id integer, in_d_id smallint, in_c_w_id integer, in_c_d_id smallint, in_c_id integer, in_last varchar,
    in_amount numeric, in_date timestamptz,
    OUT number integer, OUT warehouse_name varchar, OUT district_name varchar,
    OUT first varchar, OUT middle varchar, OUT last varchar, OUT since timestamptz, OUT credit varchar, OUT credit_limit numeric,
    OUT discount numeric, OUT balance numeric, OUT notes varchar)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + in_amount WHERE w_id = in_w_id RETURNING w_name INTO STRICT warehouse_name;
    UPDATE district SET d_ytd = d_ytd + in_amount WHERE d_w_id = in_w_id AND d_id = in_d_id
        RETURNING d_name INTO STRICT district_name;
    number := COALESCE(in_c_id, customer_number(in_c_w_id, in_c_d_id, in_last));
    UPDATE customer SET
        c_balance = c_balance - in_amount,
        c_ytd_payment = c_ytd_payment + in_amount,
        c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE WHEN c_credit <> 'BC' THEN c_data ELSE left(
            format('%s %s %s %s %s %s|%s', number, in_c_d_id, in_c_w_id, in_d_id, in_w_id, in_amount, c_data), 500) END
    WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = number
    RETURNING c_first, c_middle, c_last, c_since, c_credit, c_credit_lim, c_discount, c_balance,
            CASE WHEN c_credit = 'BC' THEN c_data END
        INTO STRICT first, middle, last, since, credit, credit_limit, discount, balance, notes;
    INSERT INTO history VALUES (
        number, in_c_d_id, in_c_w_id, in_d_id, in_w_id, in_date, in_amount, warehouse_name || '    ' || district_name);
END $$;

-- Order-status (clause 2.6.2.2), of a customer as in a payment: a row for each line of their last order, or one without an order.
CREATE FUNCTION tpcc_order_status(in_w_id integer, in_d_id smallint, in_c_id integer, in_last varchar)
RETURNS TABLE (
    first varchar, middle varchar, last varchar, balance numeric, number integer, entered timestamptz, carrier smallint,
    supply_w_id integer, i_id integer, quantity smallint, amount numeric, delivered timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    chosen integer := COALESCE(in_c_id, customer_number(in_w_id, in_d_id, in_last));
BEGIN
    SELECT c_first, c_middle, c_last, c_balance INTO STRICT first, middle, last, balance FROM customer
        WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = chosen;
    SELECT o_id, o_entry_d, o_carrier_id INTO number, entered, carrier FROM orders
        WHERE o_w_id = in_w_id AND o_d_id = in_d_id AND o_c_id = chosen ORDER BY o_id DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN NEXT;
        RETURN;
    END IF;
    FOR supply_w_id, i_id, quantity, amount, delivered IN
        SELECT ol_supply_w_id, ol_i_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
        WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id = number
    LOOP
        RETURN NEXT;
    END LOOP;
END $$;

-- Delivery (clause 2.7.4.2) of the oldest new order of each district. `in_heads` says for each that none is before; what is delivered is
-- returned by district, null where there is nothing.
CREATE FUNCTION tpcc_delivery(in_w_id integer, in_carrier smallint, in_date timestamptz, in_heads integer[]) RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
    oldest integer[];
    order_count integer;
    customer_count integer;
BEGIN
    SELECT array_agg(no_o_id ORDER BY district_id) INTO oldest
    FROM unnest(in_heads) WITH ORDINALITY AS district (head, district_id) LEFT JOIN LATERAL (
        SELECT no_o_id FROM new_order
        WHERE no_w_id = in_w_id AND no_d_id = district_id AND no_o_id >= head ORDER BY no_o_id LIMIT 1
    ) AS found ON true;

    DELETE FROM new_order USING unnest(oldest) WITH ORDINALITY AS delivered (number, district_id)
        WHERE no_w_id = in_w_id AND no_d_id = district_id AND no_o_id = number;
    GET DIAGNOSTICS order_count = ROW_COUNT;

    WITH carried AS (
        UPDATE orders SET o_carrier_id = in_carrier
        FROM unnest(oldest) WITH ORDINALITY AS delivered (number, district_id)
        WHERE o_w_id = in_w_id AND o_d_id = district_id AND o_id = number
        RETURNING o_d_id, o_c_id
    ), dated AS (
        UPDATE order_line SET ol_delivery_d = in_date
        FROM unnest(oldest) WITH ORDINALITY AS delivered (number, district_id)
        WHERE ol_w_id = in_w_id AND ol_d_id = district_id AND ol_o_id = number
        RETURNING ol_d_id, ol_amount
    ), received AS (
        SELECT o_d_id, o_c_id, sum(ol_amount) AS amount FROM carried JOIN dated ON ol_d_id = o_d_id
        GROUP BY o_d_id, o_c_id ORDER BY o_d_id
    )
    UPDATE customer SET c_balance = c_balance + amount, c_delivery_cnt = c_delivery_cnt + 1
        FROM received WHERE c_w_id = in_w_id AND c_d_id = o_d_id AND c_id = o_c_id;
    GET DIAGNOSTICS customer_count = ROW_COUNT;
    IF customer_count <> order_count THEN
        RAISE EXCEPTION '% customers of % orders were found', customer_count, order_count;
    END IF;
    RETURN oldest;
END $$;

-- Stock-level (clause 2.8.2.2): how many items of a district's last 20 orders are low in stock.
CREATE FUNCTION tpcc_stock_level(in_w_id integer, in_d_id smallint, in_threshold smallint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    next_o_id integer;
    low bigint;
BEGIN
    SELECT d_next_o_id INTO STRICT next_o_id FROM district WHERE d_w_id = in_w_id AND d_id = in_d_id;
    SELECT count(*) INTO low FROM (
        SELECT DISTINCT ol_i_id FROM order_line
        WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id >= next_o_id - 20 AND ol_o_id < next_o_id
    ) AS line JOIN stock ON s_w_id = in_w_id AND s_i_id = ol_i_id
    WHERE s_quantity < in_threshold;
    RETURN low;
END $$;
