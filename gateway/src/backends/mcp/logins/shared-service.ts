import { isJsonObject } from '../../../lib/json/json.ts'
import type { Peers } from '../../../lib/planes/peers.ts'
import type { LoginOrigin } from './links.ts'
import type { LoginDone, LoginFailure, LoginService, LoginStart } from './login-service.ts'
import type { UserToken } from './user-tokens.ts'

const callTimeoutMs = 60_000
const peerService = 'mcp logins'

/** A login service for all data planes. */
export type SharedLogin = LoginService & {
  /** Referenced, so that it is not collected before its services: a second hub would take its calls. */
  readonly hub: LoginHub
}

/** Login services of a data plane. */
export type LoginHub = {
  /** The service of the first data plane by name; `create` creates it there. */
  share(name: string, create: () => LoginService): SharedLogin
}

/** Creates the hub of a data plane. There is one at a time. */
export function createLoginHub(peers: Peers): LoginHub {
  if (peers.self !== 0) {
    const hub: LoginHub = { share: (name) => ({ ...remoteService(name, peers), hub }) }
    return hub
  }
  // A service that no configuration uses is collected, with the secret of its client.
  const services = new Map<string, WeakRef<LoginService>>()
  const collected = new FinalizationRegistry<string>((name) => {
    if (services.get(name)?.deref() === undefined) services.delete(name)
  })
  peers.serve(peerService, {
    call(envelope) {
      const { name, request } = isJsonObject(envelope) ? envelope : {}
      const service = typeof name === 'string' ? services.get(name)?.deref() : undefined
      return service && perform(service, request)
    },
  })
  const hub: LoginHub = {
    share(name, create) {
      const service = { ...create(), hub }
      services.set(name, new WeakRef(service))
      collected.register(service, name)
      return service
    },
  }
  return hub
}

function remoteService(name: string, peers: Peers): LoginService {
  const ask = async (request: object): Promise<Record<string, unknown>> => {
    try {
      const result = await peers.call(0, peerService, { name, request }, callTimeoutMs)
      return isJsonObject(result) ? result : {}
    } catch {
      return {}
    }
  }
  return {
    token: async (user, refused) => readToken(await ask({ kind: 'token', user, refused })),
    authorize: async (challenge) => readStart(await ask({ kind: 'authorize', challenge })),
    redeem: async ({ origin, ...login }) =>
      readDone(await ask({ kind: 'redeem', ...login, ...namedOf(origin) })),
  }
}

function readToken({ kind, token, expiresAt }: Record<string, unknown>): UserToken {
  if (kind === 'none') return { kind }
  if (kind !== 'token' || typeof token !== 'string') return { kind: 'unavailable' }
  return { kind, token, expiresAt: typeof expiresAt === 'number' ? expiresAt : undefined }
}

function namedOf({ issuer: server, clientId: client }: LoginOrigin) {
  return { server, client }
}

function readStart(result: Record<string, unknown>): LoginStart | LoginFailure {
  const { kind, address, server, client } = result
  if (kind !== 'started' || typeof address !== 'string') return readFailure(result)
  return { kind, address, origin: { issuer: String(server), clientId: String(client) } }
}

function readDone(result: Record<string, unknown>): LoginDone | LoginFailure {
  return result['kind'] === 'done' ? { kind: 'done' } : readFailure(result)
}

function readFailure({ reason }: Record<string, unknown>): LoginFailure {
  return { kind: 'failed', reason: typeof reason === 'string' ? reason : 'the gateway is restarting' }
}

async function perform(own: LoginService, request: unknown): Promise<unknown> {
  const { kind, user, refused, challenge, code, verifier, issuer, server, client } = isJsonObject(request)
    ? request
    : {}
  const text = (value: unknown) => (typeof value === 'string' ? value : '')
  const optional = (value: unknown) => (typeof value === 'string' ? value : undefined)
  if (kind === 'token') return own.token(text(user), optional(refused))
  if (kind === 'authorize') {
    const result = await own.authorize(text(challenge))
    return result.kind === 'started' ? { ...result, ...namedOf(result.origin) } : result
  }
  return own.redeem({
    user: text(user),
    code: text(code),
    verifier: text(verifier),
    origin: { issuer: text(server), clientId: text(client) },
    issuer: optional(issuer),
  })
}
