import type { Migrations } from '../../../database/migrations.ts'

// As `sqlite/migrations.ts`. Identifiers are compared bytewise, independent of the locale. Free space in
// pages of frequently updated tables permits updates without new index entries.
export const postgresLedgerMigrations: Migrations = {
  table: 'tollgate_ledger_migrations',
  steps: [
    `create table tollgate_requests (
    id text collate "C" primary key,
    kind text collate "C" not null,
    started_at bigint not null,
    completed_at bigint not null,
    duration_ms double precision not null,
    first_byte_ms double precision,
    status integer not null,
    error_code text collate "C",
    refused_by text collate "C",
    method text collate "C" not null,
    path text collate "C" not null,
    route text collate "C" not null,
    listener text collate "C" not null,
    key_id text collate "C",
    key_name text collate "C",
    user_name text collate "C",
    group_name text collate "C",
    client text collate "C" not null,
    user_agent text collate "C",
    operation text collate "C",
    provider text collate "C",
    request_model text collate "C",
    served_model text collate "C",
    streaming smallint not null,
    attempts integer not null,
    input_tokens bigint,
    output_tokens bigint,
    total_tokens bigint,
    cached_input_tokens bigint,
    cache_creation_tokens bigint,
    reasoning_tokens bigint,
    tokens_estimated smallint not null,
    cost_picodollars bigint,
    cost_status text collate "C",
    mcp_method text collate "C",
    mcp_target text collate "C",
    mcp_item text collate "C",
    guards text collate "C",
    limits text collate "C",
    trace_id text collate "C",
    upstream_request_id text collate "C",
    incomplete smallint not null,
    charges text collate "C",
    has_payload smallint not null,
    has_explanation smallint not null
  );
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
    id text collate "C" primary key,
    completed_at bigint not null,
    explanation text,
    request text,
    response text
  );
  create table tollgate_usage_hours (
    start bigint not null,
    id text collate "C" not null,
    kind text collate "C" not null,
    key_id text collate "C" not null,
    user_name text collate "C" not null,
    group_name text collate "C" not null,
    route text collate "C" not null,
    provider text collate "C" not null,
    model text collate "C" not null,
    mcp_target text collate "C" not null,
    status integer not null,
    requests bigint not null,
    input_tokens bigint not null,
    output_tokens bigint not null,
    total_tokens bigint not null,
    cached_input_tokens bigint not null,
    cache_creation_tokens bigint not null,
    reasoning_tokens bigint not null,
    estimated_requests bigint not null,
    unpriced_requests bigint not null,
    cost_microdollars bigint not null,
    cost_picodollars bigint not null,
    duration_ms double precision not null,
    first_byte_ms double precision not null,
    first_bytes bigint not null,
    durations_0 bigint not null,
    durations_1 bigint not null,
    durations_2 bigint not null,
    durations_3 bigint not null,
    durations_4 bigint not null,
    durations_5 bigint not null,
    durations_6 bigint not null,
    durations_7 bigint not null,
    durations_8 bigint not null,
    durations_9 bigint not null,
    primary key (start, id)
  ) with (fillfactor = 70);
  create table tollgate_usage_days (
    start bigint not null,
    id text collate "C" not null,
    kind text collate "C" not null,
    key_id text collate "C" not null,
    user_name text collate "C" not null,
    group_name text collate "C" not null,
    route text collate "C" not null,
    provider text collate "C" not null,
    model text collate "C" not null,
    mcp_target text collate "C" not null,
    status integer not null,
    requests bigint not null,
    input_tokens bigint not null,
    output_tokens bigint not null,
    total_tokens bigint not null,
    cached_input_tokens bigint not null,
    cache_creation_tokens bigint not null,
    reasoning_tokens bigint not null,
    estimated_requests bigint not null,
    unpriced_requests bigint not null,
    cost_microdollars bigint not null,
    cost_picodollars bigint not null,
    duration_ms double precision not null,
    first_byte_ms double precision not null,
    first_bytes bigint not null,
    durations_0 bigint not null,
    durations_1 bigint not null,
    durations_2 bigint not null,
    durations_3 bigint not null,
    durations_4 bigint not null,
    durations_5 bigint not null,
    durations_6 bigint not null,
    durations_7 bigint not null,
    durations_8 bigint not null,
    durations_9 bigint not null,
    primary key (start, id)
  ) with (fillfactor = 70);
  create table tollgate_keys_used (
    key_id text collate "C" primary key,
    last_used_at bigint not null
  ) with (fillfactor = 50);
  create table tollgate_budgets (
    id text collate "C" primary key,
    budget text not null,
    value text not null,
    window_start bigint not null,
    window_end bigint not null,
    used numeric not null,
    changed bigint not null
  ) with (fillfactor = 50);
  create index tollgate_budgets_changed on tollgate_budgets (changed);
  create index tollgate_budgets_window_end on tollgate_budgets (window_end);
  create table tollgate_ledger_sources (
    source text collate "C" primary key,
    number bigint not null,
    at bigint not null
  ) with (fillfactor = 50);`,
    // Finer bounds of durations. Earlier requests of up to 50 ms count as 25 to 50 ms, those above 30 s as 30
    // to 60 s.
    `alter table tollgate_usage_hours
    add column durations_10 bigint not null default 0,
    add column durations_11 bigint not null default 0,
    add column durations_12 bigint not null default 0,
    add column durations_13 bigint not null default 0,
    add column durations_14 bigint not null default 0,
    add column durations_15 bigint not null default 0,
    add column durations_16 bigint not null default 0;
  alter table tollgate_usage_days
    add column durations_10 bigint not null default 0,
    add column durations_11 bigint not null default 0,
    add column durations_12 bigint not null default 0,
    add column durations_13 bigint not null default 0,
    add column durations_14 bigint not null default 0,
    add column durations_15 bigint not null default 0,
    add column durations_16 bigint not null default 0;`,
    'alter table tollgate_requests add column cache text;',
    // As `sqlite/migrations.ts`.
    `alter table tollgate_requests add column settles text;
  create table tollgate_settlements (
    request_id text collate "C" primary key,
    at bigint not null
  );
  create index tollgate_settlements_at on tollgate_settlements (at);`,
  ],
}
