import { createHash } from 'node:crypto'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { AuthorizedRequest, Place } from '../placement.ts'
import { createTokenCache } from '../token-cache.ts'
import type { AzureAuthConfig } from './config.ts'
import { compileIdentity } from './identity.ts'

const defaultScope = 'https://cognitiveservices.azure.com/.default'
const foundryScope = 'https://ai.azure.com/.default'
const foundryHosts = '.services.ai.azure.com'

/** Scopes of one identity. */
const maxTokens = 16

/** Adds a token of the gateway's identity; a promise resolves before the request may be sent. */
export type AzureAuth = {
  readonly source: 'gateway'
  apply(request: AuthorizedRequest): Promise<void> | undefined
  refused(request: AuthorizedRequest): void
}

/**
 * Compiles `backendAuth.azure`. `node` is the configuration object whose source determines the egress policy.
 * Throws for unreadable files and missing environment variables.
 */
export function compileAzureAuth(
  config: AzureAuthConfig,
  { place, node }: { place: Place; node: object },
  context: CompileContext,
): AzureAuth {
  const request = compileIdentity(config, node, context)
  // Tokens survive reloads, and equal identities share them.
  const identity = JSON.stringify([config, context.egress.of(node).key])
  const name = `backends/azure/${createHash('sha256').update(identity).digest('base64url')}`
  const cache = context.retained(name, () => createTokenCache(maxTokens, context.clock))
  const scopeOf = ({ origin = '' }: AuthorizedRequest) =>
    config.scope ?? (hostOf(origin).endsWith(foundryHosts) ? foundryScope : defaultScope)
  return {
    source: 'gateway',
    apply(outgoing) {
      const scope = scopeOf(outgoing)
      const token = cache.get(scope, () => request(scope))
      if (typeof token !== 'string') return token.then((issued) => place(outgoing, issued))
      place(outgoing, token)
      return undefined
    },
    refused: (outgoing) => cache.refuse(scopeOf(outgoing)),
  }
}

/** Host of an origin, without its port. */
function hostOf(origin: string): string {
  return origin.replace(/^https?:\/\//, '').replace(/:\d+$/, '')
}
