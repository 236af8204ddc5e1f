import type { JsonObject } from '../../../lib/json/json.ts'
import { compileJsonNames, type FindAmbiguousName } from '../../../lib/json/names.ts'

/** Elicitation results have the field names of the form; sampling content has the protocol's names. */
const isForm = ({ action }: JsonObject): boolean => typeof action === 'string'

const isToolCall = ({ type }: JsonObject): boolean => type === 'tool_use'

const findInMessage = compileJsonNames({
  fields: `
    action argument blob capabilities clientInfo content context cursor elicitation error id jsonrpc level maxTokens
    message messages method mimeType model name notifications params progress progressToken promptsListChanged
    protocolVersion reason ref requestId resource resourceSubscriptions resourcesListChanged result role roots sampling
    stopReason systemPrompt task taskId taskIds text tools toolsListChanged total ttl type uri value`
    .trim()
    .split(/\s+/),
  free: {
    _meta: 'free',
    arguments: 'free',
    content: isForm,
    data: 'free',
    experimental: 'free',
    extensions: 'free',
    input: isToolCall,
    inputResponses: 'free',
    inputSchema: 'free',
    metadata: 'free',
    outputSchema: 'free',
    requestedSchema: 'free',
    structuredContent: 'free',
  },
})

/** Methods with parameters defined by the protocol; parameters of other methods are free JSON. */
const knownMethods =
  /^(?:initialize|ping|notifications\/(?:cancelled|initialized|message|progress)|(?:notifications\/)?(?:tools|prompts|resources|completion|tasks|logging|roots|sampling|elicitation|server|subscriptions)\/)/

/**
 * Finds member names that lenient parsers could confuse with protocol names (MCP 2025-11-25, JSON-RPC 2.0).
 */
export const findAmbiguousMcpName: FindAmbiguousName = (value) => {
  const { method, params } = value
  if (typeof method !== 'string' || params === undefined || knownMethods.test(method))
    return findInMessage(value)
  return findInMessage({ ...value, params: null })
}
