import { createHeaderFilter, firstHeader, type Headers } from '../../../net/http/headers.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import { isWithheldHeader } from '../../../upstream/withheld-headers.ts'
import type { Candidate } from '../models/candidate.ts'
import type { Provider } from '../providers/provider.ts'
import type { Call } from '../request/call.ts'

/** The client's headers after edits by policies. */
export function clientHeaders({ facts, forwarding }: Exchange): Headers {
  const { headers } = facts.request
  if (forwarding === undefined || forwarding.headerEdits.length === 0) return headers
  const edited = { ...headers }
  for (const edit of forwarding.headerEdits) edit(edited)
  return edited
}

/** Headers of the request to a candidate, without its credential. */
export function headersFor(client: Headers, call: Call, { target }: Candidate): Headers {
  const headers = filterHeaders(client)
  // Parameters of the client's media type are not forwarded: a server that applies a charset would decode
  // another text.
  if (call.json !== undefined || call.object?.batch) headers['content-type'] = 'application/json'
  // Results of batches are read completely: by their usage, which settles the batch, and by guards.
  if (call.object?.stored?.charge !== undefined) for (const name of rangeHeaders) delete headers[name]
  target.editHeaders?.(headers)
  // Bodies are read for usage and by guards, so a content coding would only be removed again.
  headers['accept-encoding'] = 'identity'
  setAnthropicHeaders(headers, call, target.provider)
  const { defaultHeaders } = target.provider
  for (const name in defaultHeaders) headers[name] ??= defaultHeaders[name] ?? ''
  return headers
}

/** RFC 9110 section 14.2. */
const rangeHeaders = ['range', 'if-range']

/** Settings of Anthropic's API: some services read them in the body only. */
function setAnthropicHeaders(
  headers: Headers,
  { anthropic, unchanged }: Call,
  { anthropicBetas }: Provider,
): void {
  if (unchanged) return
  if (anthropicBetas !== undefined) delete headers['anthropic-beta']
  else if (anthropic?.source === 'body') {
    if (anthropic.betas.length > 0) headers['anthropic-beta'] = anthropic.betas.join(',')
    if (anthropic.version !== undefined) headers['anthropic-version'] ??= anthropic.version
  }
}

/** The client's credential, unless a policy consumed it. */
export function clientCredential(headers: Headers): string | undefined {
  const authorization = firstHeader(headers, 'authorization')
  if (authorization !== undefined && authorization.slice(0, 7).toLowerCase() === 'bearer ') {
    return authorization.slice(7).trim()
  }
  return firstHeader(headers, 'x-api-key')
}

/** Headers about the client or the connection to the gateway, and headers that are set again. */
const withheldNames: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'content-encoding',
  'accept-encoding',
  'authorization',
  'x-api-key',
  'api-key',
  'x-goog-api-key',
  'x-goog-user-project',
  'cookie',
  'via',
  'origin',
  'referer',
  'expect',
  // Selects the provider of a file.
  'x-tollgate-model',
])

const filterHeaders = createHeaderFilter(
  (name) =>
    withheldNames.has(name) ||
    isWithheldHeader(name) ||
    // Settings of services of AWS, such as guardrails, parts of signatures, and retries of its SDKs.
    name.startsWith('x-amz') ||
    name.startsWith('amz-sdk-') ||
    name.startsWith('sec-') ||
    name.startsWith('access-control-'),
)
