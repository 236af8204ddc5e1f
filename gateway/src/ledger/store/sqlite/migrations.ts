import type { Migrations } from '../../../database/migrations.ts'

// Indexes for filters end with the completion time, so that a search reads the newest rows first; rows of one
// millisecond are sorted by id. Texts of dimensions may be long, so that a digest of them is in the primary
// key of sums. `used` is a decimal number of any size.
export const sqliteLedgerMigrations: Migrations = {
  table: 'tollgate_ledger_migrations',
  steps: [
    `create table tollgate_requests (
    id text not null primary key,
    kind text not null,
    started_at integer not null,
    completed_at integer not null,
    duration_ms real not null,
    first_byte_ms real,
    status integer not null,
    error_code text,
    refused_by text,
    method text not null,
    path text not null,
    route text not null,
    listener text not null,
    key_id text,
    key_name text,
    user_name text,
    group_name text,
    client text not null,
    user_agent text,
    operation text,
    provider text,
    request_model text,
    served_model text,
    streaming integer not null,
    attempts integer not null,
    input_tokens integer,
    output_tokens integer,
    total_tokens integer,
    cached_input_tokens integer,
    cache_creation_tokens integer,
    reasoning_tokens integer,
    tokens_estimated integer not null,
    cost_picodollars integer,
    cost_status text,
    mcp_method text,
    mcp_target text,
    mcp_item text,
    guards text,
    limits text,
    trace_id text,
    upstream_request_id text,
    incomplete integer not null,
    charges text,
    has_payload integer not null,
    has_explanation integer not null
  ) strict;
  create index tollgate_requests_completed on tollgate_requests (completed_at, id);
  create index tollgate_requests_status on tollgate_requests (status, completed_at);
  create index tollgate_requests_error_code on tollgate_requests (error_code, completed_at)
    where error_code is not null;
  create index tollgate_requests_route on tollgate_requests (route, completed_at);
  create index tollgate_requests_listener on tollgate_requests (listener, completed_at);
  create index tollgate_requests_key_id on tollgate_requests (key_id, completed_at)
    where key_id is not null;
  create index tollgate_requests_key_name on tollgate_requests (key_name, completed_at)
    where key_name is not null;
  create index tollgate_requests_user_name on tollgate_requests (user_name, completed_at)
    where user_name is not null;
  create index tollgate_requests_group_name on tollgate_requests (group_name, completed_at)
    where group_name is not null;
  create index tollgate_requests_client on tollgate_requests (client, completed_at);
  create index tollgate_requests_provider on tollgate_requests (provider, completed_at)
    where provider is not null;
  create index tollgate_requests_request_model on tollgate_requests (request_model, completed_at)
    where request_model is not null;
  create index tollgate_requests_served_model on tollgate_requests (served_model, completed_at)
    where served_model is not null;
  create index tollgate_requests_mcp_target on tollgate_requests (mcp_target, completed_at)
    where mcp_target is not null;
  create index tollgate_requests_mcp_item on tollgate_requests (mcp_item, completed_at)
    where mcp_item is not null;
  create index tollgate_requests_trace_id on tollgate_requests (trace_id, completed_at)
    where trace_id is not null;
  create table tollgate_request_details (
    id text not null primary key,
    completed_at integer not null,
    explanation text,
    request text,
    response text
  ) strict;
  create table tollgate_usage_hours (
    start integer not null,
    id text not null,
    kind text not null,
    key_id text not null,
    user_name text not null,
    group_name text not null,
    route text not null,
    provider text not null,
    model text not null,
    mcp_target text not null,
    status integer not null,
    requests integer not null,
    input_tokens integer not null,
    output_tokens integer not null,
    total_tokens integer not null,
    cached_input_tokens integer not null,
    cache_creation_tokens integer not null,
    reasoning_tokens integer not null,
    estimated_requests integer not null,
    unpriced_requests integer not null,
    cost_microdollars integer not null,
    cost_picodollars integer not null,
    duration_ms real not null,
    first_byte_ms real not null,
    first_bytes integer not null,
    durations_0 integer not null,
    durations_1 integer not null,
    durations_2 integer not null,
    durations_3 integer not null,
    durations_4 integer not null,
    durations_5 integer not null,
    durations_6 integer not null,
    durations_7 integer not null,
    durations_8 integer not null,
    durations_9 integer not null,
    primary key (start, id)
  ) strict, without rowid;
  create table tollgate_usage_days (
    start integer not null,
    id text not null,
    kind text not null,
    key_id text not null,
    user_name text not null,
    group_name text not null,
    route text not null,
    provider text not null,
    model text not null,
    mcp_target text not null,
    status integer not null,
    requests integer not null,
    input_tokens integer not null,
    output_tokens integer not null,
    total_tokens integer not null,
    cached_input_tokens integer not null,
    cache_creation_tokens integer not null,
    reasoning_tokens integer not null,
    estimated_requests integer not null,
    unpriced_requests integer not null,
    cost_microdollars integer not null,
    cost_picodollars integer not null,
    duration_ms real not null,
    first_byte_ms real not null,
    first_bytes integer not null,
    durations_0 integer not null,
    durations_1 integer not null,
    durations_2 integer not null,
    durations_3 integer not null,
    durations_4 integer not null,
    durations_5 integer not null,
    durations_6 integer not null,
    durations_7 integer not null,
    durations_8 integer not null,
    durations_9 integer not null,
    primary key (start, id)
  ) strict, without rowid;
  create table tollgate_keys_used (
    key_id text not null primary key,
    last_used_at integer not null
  ) strict;
  create table tollgate_budgets (
    id text not null primary key,
    budget text not null,
    value text not null,
    window_start integer not null,
    window_end integer not null,
    used text not null,
    changed integer not null
  ) strict;
  create index tollgate_budgets_changed on tollgate_budgets (changed);
  create index tollgate_budgets_window_end on tollgate_budgets (window_end);
  create table tollgate_ledger_sources (
    source text not null primary key,
    number integer not null,
    at integer not null
  ) strict;
  create table tollgate_ledger_state (
    one integer primary key check (one = 1),
    budget_changes integer not null
  ) strict;
  insert into tollgate_ledger_state (one, budget_changes) values (1, 0);`,
    // Finer bounds of durations. Earlier requests of up to 50 ms count as 25 to 50 ms, those above 30 s as 30
    // to 60 s.
    `alter table tollgate_usage_hours add column durations_10 integer not null default 0;
  alter table tollgate_usage_hours add column durations_11 integer not null default 0;
  alter table tollgate_usage_hours add column durations_12 integer not null default 0;
  alter table tollgate_usage_hours add column durations_13 integer not null default 0;
  alter table tollgate_usage_hours add column durations_14 integer not null default 0;
  alter table tollgate_usage_hours add column durations_15 integer not null default 0;
  alter table tollgate_usage_hours add column durations_16 integer not null default 0;
  alter table tollgate_usage_days add column durations_10 integer not null default 0;
  alter table tollgate_usage_days add column durations_11 integer not null default 0;
  alter table tollgate_usage_days add column durations_12 integer not null default 0;
  alter table tollgate_usage_days add column durations_13 integer not null default 0;
  alter table tollgate_usage_days add column durations_14 integer not null default 0;
  alter table tollgate_usage_days add column durations_15 integer not null default 0;
  alter table tollgate_usage_days add column durations_16 integer not null default 0;`,
    'alter table tollgate_requests add column cache text;',
    // Requests whose amounts were corrected: each is corrected once.
    `alter table tollgate_requests add column settles text;
  create table tollgate_settlements (
    request_id text not null primary key,
    at integer not null
  ) strict;
  create index tollgate_settlements_at on tollgate_settlements (at);`,
  ],
}
