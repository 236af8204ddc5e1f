import { firstHeader } from '../../net/http/headers.ts'
import type { Delivery } from '../../net/http/incoming-request.ts'
import type { Attribute } from '../../telemetry/otlp/encode.ts'
import type { Exchange } from '../exchange.ts'
import { loggableItemName } from '../mcp/mcp-item.ts'
import type { GuardDecision } from '../recording/recording.ts'

/** Texts of clients are truncated. */
const maxText = 256

/**
 * Name of the server span: method and item of MCP, operation and model of an LLM call, or method and route.
 */
export function spanName({ facts: { request, llm }, mcp, route }: Exchange): string {
  if (mcp?.call !== undefined) return nameOfMcpCall(mcp.call.method, mcp.call.item)
  if (llm !== undefined) return `${llm.operation} ${short(llm.configuredModel ?? llm.requestModel)}`
  return route === undefined ? request.method : `${request.method} ${route.prefix}`
}

/** Name of the spans of an MCP request: method, and tool or prompt. */
export function nameOfMcpCall(method: string, item: string | undefined): string {
  // URIs of resources have too many values for a name.
  if (item === undefined || method.startsWith('resources/')) return short(method)
  return `${short(method)} ${short(item)}`
}

/** Attributes of the server span, by the semantic conventions of HTTP, GenAI and MCP. */
export function serverAttributes(exchange: Exchange, { status, bytesSent }: Delivery): Attribute[] {
  const { facts, route, requestId, guards, log } = exchange
  const { request, source } = facts
  const attributes: Attribute[] = [
    ['http.request.method', short(request.method)],
    ['url.scheme', request.scheme],
    ['url.path', short(request.path)],
    ['server.address', short(hostOf(request.host))],
    ['client.address', source.address],
    ['network.protocol.name', 'http'],
    ['network.protocol.version', request.version.replace(/^HTTP\/|\.0$/g, '')],
    ['http.response.status_code', status ?? 499],
    ['http.response.body.size', bytesSent],
  ]
  const agent = firstHeader(request.headers, 'user-agent')
  if (agent !== undefined) attributes.push(['user_agent.original', short(agent)])
  if (route !== undefined) {
    attributes.push(['http.route', route.prefix], ['tollgate.route', route.target.name])
    if (route.target.listener !== undefined) attributes.push(['tollgate.listener', route.target.listener])
  }
  if (requestId !== undefined) attributes.push(['tollgate.request_id', requestId])
  if (log.refusedBy !== undefined) attributes.push(['tollgate.refused_by', short(log.refusedBy)])
  if (guards !== undefined) attributes.push(['tollgate.guards', guards.map(guardText)])
  if (facts.llm !== undefined) addGenAi(attributes, exchange)
  if (exchange.mcp?.call !== undefined) addMcp(attributes, exchange)
  return attributes
}

function guardText({ guard, phase, outcome }: GuardDecision): string {
  return `${short(guard)}: ${phase} ${outcome}`
}

/** Names of `gen_ai.provider.name` in the registry that differ from ours. */
const providerNames: Readonly<Record<string, string>> = {
  gemini: 'gcp.gemini',
  vertex: 'gcp.vertex_ai',
  bedrock: 'aws.bedrock',
  azure: 'azure.ai.openai',
  azureOpenAI: 'azure.ai.openai',
  mistral: 'mistral_ai',
  xai: 'x_ai',
}

function addGenAi(attributes: Attribute[], { facts: { llm, usage, llmRequest } }: Exchange): void {
  if (llm === undefined) return
  attributes.push(
    ['gen_ai.operation.name', llm.operation],
    ['gen_ai.request.model', short(llm.requestModel)],
    ['gen_ai.request.stream', llm.streaming],
  )
  if (llm.provider !== undefined)
    attributes.push(['gen_ai.provider.name', providerNames[llm.provider] ?? llm.provider])
  if (llm.configuredModel !== undefined) attributes.push(['tollgate.llm.model', llm.configuredModel])
  if (llm.responseModel !== undefined) attributes.push(['gen_ai.response.model', short(llm.responseModel)])
  if (llm.cache !== undefined) attributes.push(['tollgate.llm.cache', llm.cache])
  if (llm.cost !== undefined) attributes.push(['tollgate.llm.cost_usd', llm.cost])
  for (const [field, name] of requestParameters) {
    const value = llmRequest?.[field]
    if (typeof value === 'number' && !attributes.some(([known]) => known === name))
      attributes.push([name, value])
  }
  if (usage === undefined) return
  attributes.push(
    ['gen_ai.usage.input_tokens', usage.inputTokens],
    ['gen_ai.usage.output_tokens', usage.outputTokens],
  )
  if (usage.cachedInputTokens > 0)
    attributes.push(['gen_ai.usage.cache_read.input_tokens', usage.cachedInputTokens])
  if (usage.cacheCreationInputTokens > 0)
    attributes.push(['gen_ai.usage.cache_creation.input_tokens', usage.cacheCreationInputTokens])
  if (usage.reasoningTokens > 0)
    attributes.push(['gen_ai.usage.reasoning.output_tokens', usage.reasoningTokens])
}

/** Numeric parameters of requests with their attributes. */
const requestParameters = [
  ['temperature', 'gen_ai.request.temperature'],
  ['top_p', 'gen_ai.request.top_p'],
  ['top_k', 'gen_ai.request.top_k'],
  ['max_tokens', 'gen_ai.request.max_tokens'],
  ['max_completion_tokens', 'gen_ai.request.max_tokens'],
  ['max_output_tokens', 'gen_ai.request.max_tokens'],
  ['frequency_penalty', 'gen_ai.request.frequency_penalty'],
  ['presence_penalty', 'gen_ai.request.presence_penalty'],
  ['seed', 'gen_ai.request.seed'],
  ['n', 'gen_ai.request.choice.count'],
  ['dimensions', 'gen_ai.embeddings.dimension.count'],
] as const

function addMcp(attributes: Attribute[], { mcp, facts: { request } }: Exchange): void {
  const call = mcp?.call
  if (call === undefined) return
  attributes.push(...mcpAttributes(call.method, call.item))
  if (call.target !== undefined) attributes.push(['mcp.target', call.target])
  const version = firstHeader(request.headers, 'mcp-protocol-version')
  if (version !== undefined) attributes.push(['mcp.protocol.version', short(version)])
}

/** Attributes of an MCP request: method, and tool, prompt or resource. */
export function mcpAttributes(method: string, item: string | undefined): Attribute[] {
  const attributes: Attribute[] = [['mcp.method.name', short(method)]]
  if (item === undefined) return attributes
  if (method === 'tools/call')
    attributes.push(['gen_ai.operation.name', 'execute_tool'], ['gen_ai.tool.name', short(item)])
  else if (method.startsWith('prompts/')) attributes.push(['gen_ai.prompt.name', short(item)])
  else if (method.startsWith('resources/'))
    attributes.push(['mcp.resource.uri', short(loggableItemName(item))])
  return attributes
}

function hostOf(host: string): string {
  return host.replace(/:\d+$/, '')
}

function short(text: string): string {
  return text.length > maxText ? `${text.slice(0, maxText)}…` : text
}
