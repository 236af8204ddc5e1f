import type { Delivery } from '../net/http/incoming-request.ts'
import { describeError } from '../telemetry/log.ts'
import type { Exchange, GuardDecision } from './exchange.ts'

/** Client-chosen text is cut, so that no request writes long lines. */
const maxLoggedCharacters = 200

/** Texts that are their own JSON: no quotes, backslashes or control characters, and nothing outside ASCII. */
const plain = /^[ !#-[\]-~]*$/

/**
 * The one line of a request, as JSON with its newline.
 * Never bodies, header values or query strings: they hold secrets and content.
 */
export function accessLine(exchange: Exchange, delivery: Delivery, time: string, endedAt: number): string {
  const { facts, startedAt, guards, log } = exchange
  const mcpCall = exchange.mcp?.call
  const { request, llm, usage, apiKey } = facts
  let line = `{"level":"info","time":"${time}","msg":"request","method":${text(request.method)},"path":${text(request.path)}`
  line += `,"route":${text(exchange.route?.target.name ?? '')},"status":${delivery.status ?? 499}`
  line += `,"durationMs":${rounded(endedAt - startedAt)},"bytesSent":${delivery.bytesSent}`
  if (delivery.firstByteAt !== undefined)
    line += `,"firstByteMs":${rounded(delivery.firstByteAt - startedAt)}`
  line += `,"client":${text(facts.source.address)}`
  const keyId = apiKey?.['id']
  if (typeof keyId === 'string') line += `,"keyId":${text(keyId)}`
  if (llm) {
    line += `,"model":${text(llm.requestModel)},"stream":${llm.streaming}`
    if (llm.configuredModel !== undefined) line += `,"servedBy":${text(llm.configuredModel)}`
    if (llm.provider !== undefined) line += `,"provider":${text(llm.provider)}`
  }
  if (usage) {
    line += `,"inputTokens":${usage.inputTokens},"outputTokens":${usage.outputTokens},"totalTokens":${usage.totalTokens}`
    if (usage.cachedInputTokens > 0) line += `,"cachedInputTokens":${usage.cachedInputTokens}`
    if (usage.reasoningTokens > 0) line += `,"reasoningTokens":${usage.reasoningTokens}`
    if (usage.estimated) line += ',"tokensEstimated":true'
  }
  if (llm?.cost !== undefined) line += `,"costUsd":${decimal(llm.cost)}`
  if (llm?.costStatus !== undefined) line += `,"costStatus":"${llm.costStatus}"`
  if (mcpCall) {
    line += `,"mcpMethod":${text(mcpCall.method)}`
    if (mcpCall.target !== undefined) line += `,"mcpTarget":${text(mcpCall.target)}`
    if (mcpCall.item !== undefined) line += `,"mcpItem":${text(mcpCall.item)}`
  }
  if (guards !== undefined) line += `,"guards":[${guards.map(decided).join()}]`
  if (log.refusedBy !== undefined) line += `,"refusedBy":${text(log.refusedBy)}`
  if (!delivery.complete) line += ',"incomplete":true'
  if (log.failure !== undefined) line += `,"error":${JSON.stringify(describeError(log.failure))}`
  return `${line}}\n`
}

function decided({ guard, phase, outcome, reason }: GuardDecision): string {
  const why = reason === undefined ? '' : `,"reason":${text(reason)}`
  return `{"guard":${text(guard)},"phase":"${phase}","outcome":"${outcome}"${why}}`
}

function text(value: string): string {
  const shown = value.length > maxLoggedCharacters ? `${value.slice(0, maxLoggedCharacters)}…` : value
  return plain.test(shown) ? `"${shown}"` : JSON.stringify(shown)
}

/** Without an exponent, which some readers of logs do not take for a number. */
function decimal(dollars: number): string {
  const text = String(dollars)
  return text.includes('e') ? dollars.toFixed(12).replace(/\.?0+$/, '') : text
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100
}

/** The time of log lines: ISO 8601, formatted once per millisecond. */
export function createTimestamp(now: () => number): () => string {
  let formattedAt = -1
  let formatted = ''
  return () => {
    const milliseconds = now()
    if (milliseconds !== formattedAt) {
      formattedAt = milliseconds
      formatted = new Date(milliseconds).toISOString()
    }
    return formatted
  }
}
