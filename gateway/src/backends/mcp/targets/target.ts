import type { Cancellation } from '../../../lib/cancellation.ts'
import type { JsonObject } from '../../../lib/json/json.ts'
import type { HeaderEdit } from '../../../net/http/header-edits.ts'
import type { Headers } from '../../../net/http/headers.ts'
import type { Exchange, McpCall } from '../../../pipeline/exchange.ts'
import type { McpItem } from '../../../pipeline/mcp/mcp-item.ts'
import type { AttemptRecord } from '../../../pipeline/recording/recording.ts'
import type { CallSpan } from '../../../pipeline/tracing/trace.ts'
import type { TraceContext } from '../../../telemetry/tracing/trace-context.ts'
import type { Authorize } from '../../../upstream/credentials/credentials.ts'
import type { TargetLogin } from '../logins/target-login.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'

/** Authorization rules for one request of one client. */
export type Permissions = {
  permits(item: McpItem, at: 'list' | 'call'): boolean
  /** Decides on methods without a tool, prompt or resource. */
  permitsMethod(method: string): boolean
}

/** Checks for the messages of one request of a client. */
export type MessageChecks = {
  /** Decides on a request; undefined if no check concerns it. */
  request(message: Message, target: string): RequestVerdict | Promise<RequestVerdict> | undefined
  checksResult(method: string): boolean
  /** Decides on a response; the response to forward. */
  result(request: Message, target: string, response: Message): Promise<Message>
}

export type RequestVerdict =
  | { readonly kind: 'forward'; readonly message: Message; readonly headers: readonly HeaderEdit[] }
  | { readonly kind: 'refused'; readonly failure: TargetFailure }

/** A call of a target: its record for the ledger, and its span if the request is traced. */
export type RecordedCall = { readonly attempt: AttemptRecord; readonly span: CallSpan | undefined }

/** Recorder of the calls of one request, for the ledger and traces. */
export type CallRecorder = {
  begin(target: string, message: Message): RecordedCall
  /** A message of the target arrived. */
  received(call: RecordedCall): void
  ended(call: RecordedCall, failure: TargetFailure | undefined): void
}

export type CallContext = {
  /** Forwarded headers of the client's request, without credentials for the gateway. */
  readonly headers: Headers
  /**
   * Cancelled on client disconnect, which does not cancel the request: MCP clients send
   * `notifications/cancelled`.
   */
  readonly cancellation: Cancellation
  /** Protocol version of the client's request. */
  readonly protocolVersion?: string
  readonly lastEventId?: string
  /** Maximum response size in bytes, below the limit of the target. */
  readonly maxResponseBytes?: number | undefined
  /** Identity of the client, for targets whose credentials depend on it. */
  readonly caller?: Pick<Exchange, 'auth' | 'facts'> | undefined
  /** Whether another data plane, which has the caller, added its credentials to the headers. */
  readonly isAuthorized?: true | undefined
  /** Key of the client for the program limit. */
  readonly client?: (() => string) | undefined
  /** Access log entry of the request, which receives the target name. */
  readonly loggedCall?: McpCall | undefined
  /** Undefined without configured rules. */
  readonly permissions?: Permissions
  /** Limits and guards of single messages; undefined without any. */
  readonly checks?: MessageChecks | undefined
  /** Undefined without an entry in the ledger and a trace. */
  readonly recorder?: CallRecorder | undefined
  /** Position of the call in the trace of the request, for `traceparent`; undefined if it is not traced. */
  readonly trace?: TraceContext | undefined
  /** Targets that the virtual keys of the client allow; undefined if they allow all. */
  readonly targets?: TargetPermissions | undefined
}

/** Targets that one client may use. */
export type TargetPermissions = {
  permits(target: string): boolean
  /** Records the refusal of a call for the access log. */
  refused(): void
}

/** A session at one target. */
export type TargetSession = {
  /**
   * Sends a request. Progress, log messages, server requests and the response reach the sink in order.
   * `initialize` starts the upstream session.
   */
  request(message: Message, context: CallContext, sink: MessageSink): MessageFlow
  /**
   * Sends a notification or response of the client. Resolves after acceptance by the target, else with the
   * failure.
   */
  deliver(message: Message, context: CallContext): Promise<TargetFailure | undefined>
  /**
   * Opens the stream of messages outside requests. Resolves after its start, with `none` if the target has no
   * stream (405). With `lastEventId`, resumes a broken stream after that event, also one of a request.
   */
  listen(context: CallContext, sink: MessageSink): Promise<Listening>
  /**
   * State for resumption in another process; undefined if the session is bound to this process (child
   * process). With `remote`, state for resumption on another data plane of this process, where the `bound` or
   * `all` targets are remote.
   */
  state(remote?: 'bound' | 'all'): JsonObject | undefined
  /** Session at one target by name, without rules: for messages to which another data plane applied them. */
  member?(name: string): TargetSession | undefined
  /** Cancels a request of this copy of a session, for a notification that another data plane forwarded. */
  cancelPending?(notification: Message): void
  /** Ends the upstream session (DELETE, child process). Never rejects; idempotent. */
  close(): Promise<void>
  /**
   * Ends sessions at targets that are not part of `state`, when this copy leaves memory: no other copy can
   * resume them. Never rejects; idempotent.
   */
  closeUnshared?(): Promise<void>
  /** Whether the server of the session is ejected; undefined without `health` of the target. */
  isEjected?(): boolean
  /** Registers a listener, called once if the target terminates. */
  onTerminated(listener: (reason: string) => void): void
}

export type Listening =
  | { readonly kind: 'flow'; readonly flow: MessageFlow }
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly failure: TargetFailure }

/** A configured MCP server. */
export type Target = {
  readonly name: string
  /** Digest of the target's configuration, equal on all data planes. */
  readonly signature?: string | undefined
  /**
   * Whether the target supports revisions without sessions (2026-07-28): requests without `initialize`, with
   * the headers of those revisions.
   */
  readonly sessionless: boolean
  /** Credentials of calls that depend on the client; applied by `withClientAuthorization`. */
  readonly authorize?: (() => Authorize | undefined) | undefined
  /** Login of users at the target; applied by `withUserLogin` and `withUserAuthorization`. */
  readonly login?: TargetLogin | undefined
  /** Whether the target is ejected, for sessions without a state of their own. */
  isEjected?(): boolean
  /** Counts a response that did not arrive in time as a failure. */
  noResponse?(): void
  /** Creates a session, which starts with its first request (`initialize`). */
  open(): TargetSession
  /** Creates a session for a single request, limited to the targets of that request. Default: `open`. */
  openFor?(request: Message): TargetSession
  /** Resumes a session from its `state`; undefined if that is not possible. */
  resume(state: JsonObject, remote?: RemoteMembers): TargetSession | undefined
}

/** Returns the session at a target that stays on another data plane. */
export type RemoteMembers = (name: string) => TargetSession
