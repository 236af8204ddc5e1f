import type { OutgoingRequest } from '../../../../net/http-client/send.ts'
import { decoded, queryParts } from '../../../../upstream/credentials/credential-location.ts'
import { pathSegment } from '../path-segment.ts'
import type { ProviderPaths } from '../provider.ts'

/**
 * Adds a key or a token. Access tokens begin with `ya29.`, other tokens are JWTs, which begin with an encoded
 * brace and quote; keys have a separate header. The OpenAI-compatible API accepts all as bearer tokens.
 */
export function authorizeGoogle({ headers, path }: OutgoingRequest, credential: string): void {
  const isToken = credential.startsWith('ya29.') || credential.startsWith('eyJ')
  if (isToken || path.includes('/openai/')) headers['authorization'] = `Bearer ${credential}`
  else headers['x-goog-api-key'] = credential
}

/**
 * Parameters that every API of Google has: credentials, and changes of the response such as `fields`, which
 * could remove its usage. https://cloud.google.com/apis/docs/system-parameters
 */
const systemParameters: ReadonlySet<string> = new Set([
  ...['access_token', 'alt', 'callback', 'fields', 'key', 'oauth_token', 'prettyprint', 'quotauser'],
  ...['upload_protocol', 'uploadtype', 'userproject'],
])

/** The query for a path, without system parameters of the client. */
export function googleQuery(query: string, path: string): string {
  const own = path.endsWith(':streamGenerateContent') ? ['alt=sse'] : []
  if (query.length < 2) return own.length === 0 ? '' : `?${own[0]}`
  const others = queryParts(query).flatMap(({ name, text }) => (isSystem(name) ? [] : [text]))
  const parts = [...own, ...others]
  return parts.length === 0 ? '' : `?${parts.join('&')}`
}

function isSystem(name: string): boolean {
  const plain = decoded(name).toLowerCase()
  return plain.startsWith('$') || systemParameters.has(plain)
}

/**
 * A model as the last segment of a path before its method. Versions such as `claude@20250929` remain
 * readable.
 */
export function modelSegment(model: string): string | undefined {
  return pathSegment(model)?.replaceAll('%40', '@')
}

/** True if a path names a model that is not `model`. `path` is decoded, in lower case. */
export function namesOtherGoogleModel(path: string, model: string): boolean {
  const start = Math.max(path.lastIndexOf('/models/'), path.lastIndexOf('/tunedmodels/'))
  if (start === -1) return false
  const named = path.slice(path.indexOf('/', start + 1) + 1)
  const plain = model.toLowerCase().replace(/^.*\//, '')
  return named !== plain && !named.startsWith(`${plain}:`)
}

/** Paths of a model that generates content, streamed or not. */
export function contentPaths(modelPath: string, streaming: boolean): ProviderPaths {
  return {
    generate_content: `${modelPath}:${streaming ? 'streamGenerateContent' : 'generateContent'}`,
    gemini_count_tokens: `${modelPath}:countTokens`,
  }
}

/** Paths of a model that embeds contents. */
export function embeddingPaths(modelPath: string): ProviderPaths {
  return {
    embed_content: `${modelPath}:embedContent`,
    batch_embed_contents: `${modelPath}:batchEmbedContents`,
  }
}
