import type { Reply } from '../../net/http-client/send.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import type { SecretSource } from '../../schema/dsl.ts'
import { compileAwsAuth } from './aws/aws.ts'
import { compileAzureAuth } from './azure/azure.ts'
import type { Caller } from './caller.ts'
import { unavailable } from './cloud/fetch-token.ts'
import { type BackendAuthConfig, keyOf, placeOf } from './config.ts'
import { compileCopilotAuth } from './copilot/copilot.ts'
import { isCredential } from './credential.ts'
import { compileGoogleAuth } from './google/google.ts'
import { compileJwtSign } from './jwt-sign.ts'
import { machineIdentityOf } from './machine-identity/machine-identity.ts'
import {
  type CredentialUse,
  compileIdentityCheck,
  type RefuseIdentity,
  refusedCredential,
} from './machine-identity/permit.ts'
import { type AuthorizedRequest, compilePlacement, compileReadPlaced, type Place } from './placement.ts'
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
  /**
   * Reports that the backend has refused the credential of a request: the next request has another one, at
   * most once in 30 seconds. Undefined for credentials that are not requested.
   */
  refused?(request: AuthorizedRequest, caller: Caller): void
  /** The credentials of the gateway in an authorized request, which relayed errors must not show. */
  placed?(request: AuthorizedRequest): readonly string[]
  /** Sets the credentials of `credentials` only, which `apply` sets, too. */
  applyMore?(request: AuthorizedRequest): void
  /** Removes the tokens of the client that are exchanged, for copies of requests to other servers. */
  strip?(request: AuthorizedRequest, caller: Caller): void
}

/**
 * Compiles `backendAuth`. The source of the credential determines the egress policy of token requests; the
 * source of the destination whether it may receive a token of this machine. Throws if the credential file is
 * not readable or its content is not a credential.
 */
export function compileAuthorize(
  config: BackendAuthConfig | undefined,
  context: CompileContext,
  use: Partial<CredentialUse> = {},
): Authorize | undefined {
  if (config === undefined) return undefined
  const refusal = refuseCredential(config, use, context)
  if (refusal !== undefined) return refusal
  const { credentials, ...single } = config
  const more = credentials?.map((credential) => compileMore(credential, context)) ?? []
  const first = isEmpty(single) ? undefined : compileSingle(config, context, use)
  return more.length === 0 ? first : withMore(first, more)
}

/** A request, and the client on whose behalf it is sent. */
export type SentRequest = { readonly request: AuthorizedRequest; readonly caller: Caller }

/** Sends a request with its credential, whose refusal (401, 403) is reported. Throws as `apply`. */
export function sendAuthorized(
  authorize: Authorize | undefined,
  { request, caller }: SentRequest,
  send: () => Promise<Reply>,
): Promise<Reply> {
  const authorizing = authorize?.apply(request, caller)
  const sent = authorizing === undefined ? send() : authorizing.then(send)
  if (authorize?.refused === undefined) return sent
  return sent.then((reply) => {
    if (reply.status === 401 || reply.status === 403) authorize.refused?.(request, caller)
    return reply
  })
}

/**
 * Denies every request, if the configured credential must not be sent to its destination. Identities of this
 * machine have a check of their own.
 */
export function refuseCredential(
  config: BackendAuthConfig,
  { source = config, ...use }: Partial<CredentialUse>,
  { egress }: CompileContext,
): Authorize | undefined {
  const { passthrough, location: _, ...own } = config
  if ((passthrough !== undefined && isEmpty(own)) || machineIdentityOf(config) !== undefined) return undefined
  const reason = refusedCredential({ ...use, source, destination: use.destination }, egress)
  return reason === undefined ? undefined : refused(() => reason)
}

function isEmpty(config: object): boolean {
  return Object.values(config).every((value) => value === undefined)
}

function compileSingle(
  config: BackendAuthConfig,
  context: CompileContext,
  use: Partial<CredentialUse>,
): Authorize {
  const { source = config, destination } = use
  const identity = machineIdentityOf(config)
  const read = compileReadPlaced(placeOf(config))
  const placed = (request: AuthorizedRequest) => {
    const credential = read(request)
    return credential === undefined ? [] : [credential]
  }
  if (identity === undefined) {
    const authorize = compileCredential(config, source, context)
    return authorize.isPassthrough === true ? authorize : { placed, ...authorize }
  }
  const refuses = compileIdentityCheck(identity, { ...use, source, destination }, context.egress)
  if (context.egress.of(source).identityHosts === undefined) return refused(refuses)
  const authorize = compileCredential(config, source, context)
  return {
    placed,
    ...authorize,
    apply(request, caller) {
      const reason = refuses(request)
      if (reason !== undefined) throw unavailable(reason)
      return authorize.apply(request, caller)
    },
  }
}

/** A credential of `credentials`, read once. */
type More = { readonly credential: string; readonly place: Place }

function compileMore(
  { key, location }: NonNullable<BackendAuthConfig['credentials']>[number],
  context: CompileContext,
): More {
  return { credential: readKey(key, context), place: compilePlacement(location) }
}

/** Authentication with further credentials, which do not depend on the client. */
function withMore(first: Authorize | undefined, more: readonly More[]): Authorize {
  const values = more.map(({ credential }) => credential)
  const applyMore = (request: AuthorizedRequest) => {
    for (const { credential, place } of more) place(request, credential)
  }
  return {
    source: 'gateway',
    ...first,
    applyMore,
    placed: (request) => [...(first?.placed?.(request) ?? []), ...values],
    apply(request, caller) {
      // Before a signature of the request, and after tokens of the client are removed.
      applyMore(request)
      const pending = first?.apply(request, caller)
      if (pending !== undefined) return pending.then(() => applyMore(request))
      applyMore(request)
      return undefined
    },
  }
}

/** Denies every request: the credential is not read. */
function refused(refuses: RefuseIdentity): Authorize {
  return {
    source: 'gateway',
    apply(request) {
      throw unavailable(refuses(request) ?? 'no credential is available')
    },
  }
}

function compileCredential(config: BackendAuthConfig, source: object, context: CompileContext): Authorize {
  const place = compilePlacement(placeOf(config))
  const { jwtSign, oauthTokenExchange, crossAppAccess, aws, azure, gcp, copilot } = config
  if (aws !== undefined) return compileAwsAuth(aws, source, context)
  if (azure !== undefined) return compileAzureAuth(azure, { place, node: source }, context)
  if (gcp !== undefined) return compileGoogleAuth(gcp, { place, node: source }, context)
  if (copilot !== undefined) return compileCopilotAuth({ place }, context)
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
