import { compileCheckedCel } from '../../../cel/checked.ts'
import { CelEvaluationError } from '../../../cel/failure.ts'
import { evaluateToWrite } from '../../../cel/results.ts'
import { withSharedWorkBudget } from '../../../cel/work-budget.ts'
import { readJsonObject } from '../../../lib/json/text.ts'
import { createMessageWriter } from '../../../lib/protobuf/message-writer.ts'
import { GrpcError } from '../../../net/grpc-client.ts'
import { type HeaderEdit, isEditableHeader, isHeaderValue } from '../../../net/http/header-edits.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { type Exchange, sentPath } from '../../../pipeline/exchange.ts'
import type { McpCheck, McpRequest, McpVerdict } from '../../../pipeline/mcp/mcp-check.ts'
import type { ServiceCall } from '../../../pipeline/tracing/service-calls.ts'
import type { GuardOutcome } from '../../../telemetry/metrics/rules-and-guards.ts'
import { callerOf } from '../../../upstream/credentials/caller.ts'
import { type Breaker, createBreaker } from '../../../upstream/grpc-service/breaker.ts'
import { compileGrpcService } from '../../../upstream/grpc-service/grpc-service.ts'
import type { Phase } from '../guard.ts'
import { recordDecision } from '../run.ts'
import { metadataVariables, type ProcessorConfig, timeoutOf } from './config.ts'
import { compilePhases } from './phases.ts'
import {
  type CheckedMessage,
  checkRequestPath,
  checkResponsePath,
  decodeVerdict,
  encodeMessage,
  errorData,
  type HeaderMutation,
  type ServiceVerdict,
} from './wire.ts'

/** Longest reason of a refusal in the response to the client. */
const maxReason = 1_000
const internalError = -32603

/** Compiles a service that decides on messages. Throws if a TLS or credential file is unreadable. */
export function compileProcessor(config: ProcessorConfig, name: string, context: CompileContext): McpCheck {
  const service = compileGrpcService(config, context)
  const breakerName = `mcp-guardrails/breaker/${service.key}`
  const writer = createMessageWriter()
  const metadataOf = compileMetadata(config.metadata)
  const headersOf = compileHeaderFilter(config.requestHeaders)
  const checks = compilePhases(config.methods ?? {})
  const failsOpen = config.failureMode?.toLowerCase() === 'failopen'
  const meter = context.metrics.guard(name)
  const { clock } = context
  const remote: Remote = {
    calls: { request: service.method(checkRequestPath), response: service.method(checkResponsePath) },
    authorize: service.authorize,
    deadlineMs: service.timeoutMs ?? timeoutOf(config),
    breaker: context.retained(breakerName, () => createBreaker(context.memory, breakerName, clock)),
  }

  async function decide(
    exchange: Exchange,
    request: McpRequest,
    { phase, message }: { phase: Phase; message: Uint8Array },
  ): Promise<McpVerdict | undefined> {
    const startedAt = clock.monotonic()
    const record = (outcome: GuardOutcome, reason?: string) => {
      const durationMs = clock.monotonic() - startedAt
      meter.checked(phase, outcome, durationMs)
      recordDecision(exchange, { guard: name, phase, outcome, reason, durationMs })
    }
    try {
      const verdict = mcpVerdict(await call(remote, phase, message, exchange), request, phase)
      record(outcomes[verdict.kind])
      if (verdict.kind === 'refuse') exchange.log.refusedBy = `guardrail: ${name}`
      return verdict
    } catch (error) {
      record(failsOpen ? 'fail_open' : 'fail_closed', reasonOf(error))
      if (failsOpen) return undefined
      exchange.log.failure ??= error
      exchange.log.refusedBy = `guardrail: ${name} failed`
      return { kind: 'refuse', status: 503, code: internalError, message: 'guard of MCP messages failed' }
    }
  }

  const encode = (message: CheckedMessage) => encodeMessage(writer, message)
  return {
    name,
    isGuard: true,
    onRequest(exchange, request) {
      if (!checks(request.method, 'request')) return undefined
      const { target, method, params } = request
      const metadata = metadataOf(exchange)
      const message = encode({ target, method, metadata, content: params, headers: headersOf(exchange) })
      return decide(exchange, request, { phase: 'request', message })
    },
    checksResult: (method) => checks(method, 'response'),
    onResult(exchange, request, result) {
      const { target, method } = request
      const message = encode({ target, method, metadata: metadataOf(exchange), content: result, headers: [] })
      return decide(exchange, request, { phase: 'response', message })
    },
  }
}

const outcomes = { pass: 'allow', replace: 'mask', refuse: 'reject' } as const

type Remote = {
  readonly calls: Readonly<Record<Phase, ServiceCall>>
  readonly authorize: ReturnType<typeof compileGrpcService>['authorize']
  readonly deadlineMs: number
  readonly breaker: Breaker
}

/** Calls the service. Throws without a call while the breaker is open. */
async function call(
  { calls, authorize, deadlineMs, breaker }: Remote,
  phase: Phase,
  message: Uint8Array,
  exchange: Exchange,
): Promise<ServiceVerdict> {
  if (!breaker.admits()) throw new Error('not called: the last calls had no response')
  const metadata = authorize && (await authorize(callerOf(exchange)))
  try {
    const bytes = await calls[phase](message, {
      deadlineMs,
      trace: exchange.trace,
      ...(metadata && { metadata }),
    })
    breaker.succeeded()
    return decodeVerdict(bytes)
  } catch (error) {
    if (isUnanswered(error)) breaker.failed()
    else breaker.succeeded()
    throw error
  }
}

/** DEADLINE_EXCEEDED or UNAVAILABLE; every other status is a response. */
function isUnanswered(error: unknown): boolean {
  return error instanceof GrpcError && (error.status === 4 || error.status === 14)
}

/** Reason for logs, without content. */
function reasonOf(error: unknown): string {
  if (error instanceof GrpcError) return `gRPC status ${error.status}`
  return error instanceof RangeError || error instanceof TypeError ? 'invalid result' : 'not called'
}

/** Throws `RangeError` for a change that is not a JSON object. */
function mcpVerdict(verdict: ServiceVerdict, { item }: McpRequest, phase: Phase): McpVerdict {
  if (verdict.kind === 'error') {
    const { code, reason, data } = verdict
    const message = reason.slice(0, maxReason) || 'refused by a guard'
    return { kind: 'refuse', status: code === -32003 ? 429 : 403, code, message, data: errorData(data) }
  }
  const headers = phase === 'request' ? headerEdits(verdict.headers) : []
  // Lists have no parameters to change.
  if (verdict.kind === 'pass' || (phase === 'request' && item === undefined)) return { kind: 'pass', headers }
  if (readJsonObject(verdict.text).kind !== 'object') throw new RangeError('a change is not a JSON object')
  return { kind: 'replace', text: verdict.text, headers }
}

/** The valid edits. Headers of the MCP transport belong to the gateway. */
function headerEdits({ set, remove }: HeaderMutation): HeaderEdit[] {
  const edits: HeaderEdit[] = []
  const known = new Set<string>()
  for (const [key, value] of set) {
    const name = key.toLowerCase()
    if (!isMutable(name) || !isHeaderValue(value)) continue
    edits.push({ kind: known.has(name) ? 'append' : 'set', name, value })
    known.add(name)
  }
  for (const key of remove) {
    const name = key.toLowerCase()
    if (isMutable(name)) edits.push({ kind: 'remove', name })
  }
  return edits
}

function isMutable(name: string): boolean {
  return isEditableHeader(name) && !name.startsWith('mcp-')
}

function compileMetadata(config: ProcessorConfig['metadata']): (exchange: Exchange) => object | undefined {
  const programs = Object.entries(config ?? {}).map(
    ([name, source]) => [name, compileCheckedCel(source, metadataVariables)] as const,
  )
  if (programs.length === 0) return () => undefined
  return ({ facts }) =>
    withSharedWorkBudget(() => {
      const values: [string, unknown][] = []
      for (const [name, program] of programs) {
        try {
          values.push([name, evaluateToWrite(program, facts)])
        } catch (error) {
          if (!(error instanceof CelEvaluationError)) throw error
        }
      }
      return Object.fromEntries(values)
    })
}

type HeaderFields = [name: string, value: string][]

function compileHeaderFilter(
  config: ProcessorConfig['requestHeaders'] = {},
): (exchange: Exchange) => HeaderFields {
  const allowed = namesOf(config.allowed)
  const disallowed = namesOf(config.disallowed)
  const allows = (name: string) => (allowed.size === 0 || allowed.has(name)) && !disallowed.has(name)
  return ({ facts: { request } }) => {
    const pseudo = [
      [':method', request.method],
      [':scheme', request.scheme],
      [':authority', request.host],
      [':path', sentPath(request) + request.query],
    ] as const
    const fields: HeaderFields = pseudo.flatMap(([name, value]) => (allows(name) ? [[name, value]] : []))
    for (const [name, value] of Object.entries(request.headers)) {
      if (value === undefined || !allows(name)) continue
      for (const line of Array.isArray(value) ? value : [value]) fields.push([name, line])
    }
    return fields
  }
}

function namesOf(names: readonly string[] = []): ReadonlySet<string> {
  return new Set(names.map((name) => name.toLowerCase()))
}
