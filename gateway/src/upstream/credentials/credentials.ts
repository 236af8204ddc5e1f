import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { SecretSource } from '../../schema/dsl.ts'
import { compileAzureAuth } from './azure/azure.ts'
import type { Caller } from './caller.ts'
import { type BackendAuthConfig, keyOf, placeOf } from './config.ts'
import { isCredential } from './credential.ts'
import { compileGoogleAuth } from './google/google.ts'
import { compileJwtSign } from './jwt-sign.ts'
import { type AuthorizedRequest, compilePlacement, type Place } from './placement.ts'
import { compileCrossAppAccess, compileTokenExchange, type TokenIssuer } from './token-exchange.ts'

/** Authentication of the gateway to a backend. */
export type Authorize = {
  /** `gateway`: the credential exists without a client. `client`: it depends on the client of the request. */
  readonly source: 'gateway' | 'client'
  /** Whether the backend receives the credential of the client itself. */
  readonly isPassthrough?: boolean
  /**
   * Sets the credential on the request in place. The returned promise, if any, must resolve before the
   * request is sent; a rejection or an exception denies it.
   */
  apply(request: AuthorizedRequest, caller: Caller): Promise<void> | undefined
  /** Removes the tokens of the client that are exchanged, for copies of requests to other servers. */
  strip?(request: AuthorizedRequest, caller: Caller): void
}

/**
 * Compiles `backendAuth`. `node` is the configuration object whose source determines the egress policy of
 * token requests. Throws if the credential file is not readable or its content is not a credential.
 */
export function compileAuthorize(
  config: BackendAuthConfig | undefined,
  context: CompileContext,
  node: object | undefined = config,
): Authorize | undefined {
  if (config === undefined) return undefined
  const place = compilePlacement(placeOf(config))
  const { jwtSign, oauthTokenExchange, crossAppAccess, azure, gcp } = config
  if (azure !== undefined) return compileAzureAuth(azure, { place, node: node ?? azure }, context)
  if (gcp !== undefined) return compileGoogleAuth(gcp, { place, node: node ?? gcp }, context)
  if (oauthTokenExchange !== undefined)
    return withIssuer(compileTokenExchange(oauthTokenExchange, context), place)
  if (crossAppAccess !== undefined) return withIssuer(compileCrossAppAccess(crossAppAccess, context), place)
  const key = keyOf(config)
  const fixed = key === undefined ? undefined : readKey(key, context)
  const credential = jwtSign === undefined ? fixed : compileJwtSign(jwtSign, context)
  if (credential === undefined) {
    return {
      source: 'client',
      isPassthrough: true,
      apply(request, { credential }) {
        if (credential !== undefined) place(request, credential)
        return undefined
      },
    }
  }
  const read = typeof credential === 'string' ? () => credential : credential
  return {
    source: 'gateway',
    apply(request) {
      place(request, read())
      return undefined
    },
  }
}

/** Authentication with a token of an authorization server, in place of the token of the client. */
function withIssuer(issuer: TokenIssuer, place: Place): Authorize {
  return {
    source: issuer.source,
    strip: issuer.strip,
    apply(request, caller) {
      const token = issuer.token(caller)
      issuer.strip(request, caller)
      if (typeof token !== 'string') return token.then((issued) => place(request, issued))
      place(request, token)
      return undefined
    },
  }
}

function readKey(key: SecretSource, { readFile }: CompileContext): string {
  if (typeof key === 'string') return key
  const text = readFile(key.file).trim()
  if (!isCredential(text))
    throw new Error(`${key.file} is not a credential: expected printable ASCII on one line`)
  return text
}
