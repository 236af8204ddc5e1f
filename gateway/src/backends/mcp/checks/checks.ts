import { asGatewayError } from '../../../lib/gateway-error.ts'
import { editTopLevel, memberText } from '../../../lib/json/edit.ts'
import { applyHeaderEdits, type HeaderEdit } from '../../../net/http/header-edits.ts'
import type { Reply } from '../../../net/http-client/send.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { McpFacts } from '../../../pipeline/facts/mcp-facts.ts'
import type { McpCheck, McpRequest, McpVerdict } from '../../../pipeline/mcp/mcp-check.ts'
import { argumentsOf } from '../message/arguments.ts'
import { callTargetOf } from '../message/items.ts'
import { readTargetObject } from '../message/json-edit.ts'
import { errorText, internalError, invalidRequest } from '../message/json-rpc.ts'
import type { Message, MessageFlow, MessageSink, TargetFailure } from '../message/message.ts'
import type { CallContext, MessageChecks, RequestVerdict, Target, TargetSession } from '../targets/target.ts'
import { readTargetRefusal } from '../targets/target-refusal.ts'
import { createCheckedSink, isAnswer, withOwnAnswers, withoutTaskResults } from './checked-sink.ts'
import { withMirroredHeaders } from './mirrored-headers.ts'

/**
 * Applies the checks of the request (`CallContext.checks`) to a target. They see the target's own names,
 * after its rules.
 */
export function withChecks(target: Target): Target {
  const { openFor: _, ...rest } = target
  return {
    ...rest,
    open: () => checked(target.open()),
    resume(state, remote) {
      const session = target.resume(state, remote)
      return session && checked(session)
    },
  }

  function checked(session: TargetSession): TargetSession {
    return {
      ...session,
      request(message, context, sink) {
        const { checks } = context
        const { method } = message.value
        if (checks === undefined || typeof method !== 'string') return session.request(message, context, sink)
        const verdict = checks.request(message, target.name)
        if (verdict === undefined) return forward(session, { message, context, checks }, sink)
        return decide(session, verdict, { message, context, checks }, sink)
      },
      async deliver(message, context) {
        if (context.checks === undefined) return session.deliver(message, context)
        // Lenient targets may execute a request without an id.
        if (callTargetOf(message.value) !== undefined) return callWithoutId
        const failure = await session.deliver(message, context)
        return failure && withoutBody(failure)
      },
      async listen(context, sink) {
        if (context.checks === undefined) return session.listen(context, sink)
        // An answer cannot be checked without its request.
        const answers = withOwnAnswers(withoutTaskResults(sink, context.checks), undefined)
        const listening = await session.listen(context, answers)
        return listening.kind === 'failed'
          ? { kind: 'failed', failure: withoutBody(listening.failure) }
          : listening
      },
    }
  }

  type Checked = { message: Message; context: CallContext; checks: MessageChecks }

  function decide(
    session: TargetSession,
    verdict: RequestVerdict | Promise<RequestVerdict>,
    request: Checked,
    sink: MessageSink,
  ): MessageFlow {
    let flow: MessageFlow | undefined
    let isCancelled = false
    const act = (decided: RequestVerdict) => {
      if (isCancelled) return
      if (decided.kind === 'refused') sink.fail(decided.failure)
      else flow = forward(session, { ...request, ...editedRequest(request, decided) }, sink)
    }
    if (verdict instanceof Promise) {
      verdict.then(act).catch((error: unknown) => {
        if (!isCancelled) sink.fail({ kind: 'error', error: asGatewayError(error) })
      })
    } else act(verdict)
    return {
      resume: () => flow?.resume(),
      cancel() {
        isCancelled = true
        flow?.cancel()
      },
    }
  }

  /** Sends the request. Its results are compared with the original request. */
  function forward(
    session: TargetSession,
    { message, context, checks }: Checked,
    sink: MessageSink,
  ): MessageFlow {
    const { method, id } = message.value
    const shown = withoutTaskResults(sink, checks)
    if (typeof method !== 'string' || !checks.checksResult(method))
      return session.request(message, context, withOwnAnswers(shown, id))
    const guarded = createCheckedSink(shown, {
      isResponse: isAnswer,
      check: (response) => checks.result(message, target.name, response),
      checkFailure: (failure) =>
        failure.kind === 'reply'
          ? checkReply(failure.reply, message, (response) => checks.result(message, target.name, response))
          : undefined,
    })
    const flow = session.request(message, context, withOwnAnswers(guarded.sink, id))
    return {
      resume: () => flow.resume(),
      cancel() {
        guarded.cancel()
        flow.cancel()
      },
    }
  }
}

/**
 * Checks the body of an HTTP error as the JSON-RPC error that it becomes. The reply retains its status and
 * challenge.
 */
async function checkReply(
  reply: Reply,
  { text, value }: Message,
  check: (response: Message) => Promise<Message>,
): Promise<TargetFailure> {
  const refusal = readTargetRefusal(reply, value['id'])
  const idText = memberText(readTargetObject(text), 'id') ?? 'null'
  const errorResponseText =
    refusal.kind === 'error'
      ? `{"jsonrpc":"2.0","id":${idText},"error":${refusal.text}}`
      : errorText(idText, internalError, `the target answered with status ${reply.status}`, refusal.data)
  const checked = await check(readTargetObject(errorResponseText))
  const headers = { ...reply.headers, 'content-type': 'application/json' }
  return { kind: 'reply', reply: { ...reply, headers, body: Buffer.from(checked.text) } }
}

/** A failure without content of the target, which no check has seen. */
function withoutBody(failure: TargetFailure): TargetFailure {
  if (failure.kind !== 'reply') return failure
  const { 'content-type': _, ...headers } = failure.reply.headers
  return { kind: 'reply', reply: { ...failure.reply, headers, body: undefined } }
}

function editedRequest(
  { message: original, context }: { message: Message; context: CallContext },
  { message, headers }: Extract<RequestVerdict, { kind: 'forward' }>,
): { message: Message; context: CallContext } {
  const isSame = message === original
  if (isSame && headers.length === 0) return { message, context }
  const edited = { ...(isSame ? context.headers : withMirroredHeaders(context.headers, original, message)) }
  applyHeaderEdits(edited, headers)
  return { message, context: { ...context, headers: edited } }
}

const changedItem: TargetFailure = {
  kind: 'refused',
  status: 502,
  code: internalError,
  message: 'a guard must not change the name of the tool, prompt or resource',
}

const callWithoutId: TargetFailure = {
  kind: 'refused',
  status: 400,
  code: invalidRequest,
  message: 'this method is a request and needs an id',
}

/** Binds the checks of an endpoint to a request of a client; undefined without checks. */
export function messageChecks(
  exchange: Exchange,
  checks: readonly McpCheck[] | undefined,
): MessageChecks | undefined {
  if (checks === undefined || checks.length === 0) return undefined
  return {
    request: (message, target) => runRequest(exchange, checks, message, target),
    checksResult: (method) => checks.some((check) => check.checksResult?.(method) === true),
    result: (request, target, response) => runResult(exchange, checks, requestOf(request, target), response),
  }
}

function requestOf({ text, value }: Message, target: string): McpRequest {
  const call = callTargetOf(value)
  const method = String(value['method'])
  return {
    ...{ method, target, text },
    item: call?.name === undefined ? undefined : { kind: call.kind, name: call.name },
    get params() {
      return memberText(readTargetObject(text), 'params')
    },
  }
}

/** Variables of expressions. Checks read them before they wait, because other messages replace them. */
function factsOf({ text, value }: Message, target: string): McpFacts {
  const method = String(value['method'])
  const call = callTargetOf(value)
  if (call?.name === undefined) return { method }
  const item = { name: call.name, target }
  if (call.kind !== 'tool') return { method, [call.kind]: item }
  return {
    method,
    tool: {
      ...item,
      get arguments() {
        return argumentsOf({ text, value })
      },
    },
  }
}

/** Runs the checks in order until one refuses. Only checks that wait cost a promise. */
function runRequest(
  exchange: Exchange,
  checks: readonly McpCheck[],
  message: Message,
  target: string,
  headers: readonly HeaderEdit[] = [],
): RequestVerdict | Promise<RequestVerdict> {
  for (const [index, check] of checks.entries()) {
    exchange.facts.mcp = factsOf(message, target)
    const verdict = check.onRequest?.(exchange, requestOf(message, target))
    if (verdict instanceof Promise) {
      const rest = checks.slice(index + 1)
      return verdict.then((decided) => {
        const next = apply(message, headers, decided)
        return next.kind === 'refused' ? next : runRequest(exchange, rest, next.message, target, next.headers)
      })
    }
    if (verdict === undefined) continue
    const next = apply(message, headers, verdict)
    if (next.kind === 'refused') return next
    return runRequest(exchange, checks.slice(index + 1), next.message, target, next.headers)
  }
  return { kind: 'forward', message, headers }
}

function apply(
  message: Message,
  headers: readonly HeaderEdit[],
  verdict: McpVerdict | undefined,
): RequestVerdict {
  if (verdict === undefined) return { kind: 'forward', message, headers }
  if (verdict.kind === 'refuse') {
    const { status, code, message: text, data } = verdict
    return { kind: 'refused', failure: { kind: 'refused', status, code, message: text, data } }
  }
  const edited = [...headers, ...(verdict.headers ?? [])]
  if (verdict.kind === 'pass') return { kind: 'forward', message, headers: edited }
  const changed = withMember(message, 'params', verdict.text)
  // Rules have authorized this item.
  if (callTargetOf(changed.value)?.name !== callTargetOf(message.value)?.name)
    return { kind: 'refused', failure: changedItem }
  return { kind: 'forward', message: changed, headers: edited }
}

async function runResult(
  exchange: Exchange,
  checks: readonly McpCheck[],
  request: McpRequest,
  response: Message,
): Promise<Message> {
  let current = response
  for (const check of checks) {
    if (check.checksResult?.(request.method) !== true) continue
    // An invalid response has both.
    for (const [member, decide] of [
      ['result', check.onResult],
      ['error', check.onError],
    ] as const) {
      const text = decide && memberText(readTargetObject(current.text), member)
      if (text === undefined) continue
      const verdict = await decide?.(exchange, request, text)
      if (verdict === undefined || verdict.kind === 'pass') continue
      if (verdict.kind === 'refuse') return errorResponse(current, verdict)
      current = withMember(current, member, verdict.text)
    }
  }
  return current
}

function errorResponse(
  response: Message,
  { code, message, data }: Extract<McpVerdict, { kind: 'refuse' }>,
): Message {
  const id = memberText(readTargetObject(response.text), 'id') ?? 'null'
  return readTargetObject(errorText(id, code, message, data))
}

/** Replaces a member; all other bytes are preserved. */
function withMember({ text }: Message, name: string, value: string): Message {
  return readTargetObject(editTopLevel(readTargetObject(text), { set: new Map([[name, value]]) }))
}
