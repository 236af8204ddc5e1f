import { identifiesUser, ownerOf } from '../../../identity/owner.ts'
import { createReplayCache } from '../../../identity/tokens/replay.ts'
import { readSessionKey } from '../../../lib/session-key.ts'
import { compileClientChosenPolicy } from '../../../net/egress/client-chosen.ts'
import type { EgressPolicy } from '../../../net/egress/egress.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { Exchange } from '../../../pipeline/exchange.ts'
import type { Policy } from '../../../pipeline/policy.ts'
import { ownPorts } from '../../../upstream/dynamic.ts'
import { sendUnder } from '../../../upstream/egress.ts'
import type { TargetFailure } from '../message/message.ts'
import type { TargetAddress } from '../targets/address.ts'
import type { LoginConfig } from './config.ts'
import { createLoginLinks, digestOf, type LoginUser } from './links.ts'
import { createLoginService, type LoginService } from './login-service.ts'
import { basePathOf, createLoginPages, documentPathOf } from './pages.ts'
import { createLoginHub } from './shared-service.ts'
import type { TargetLogin } from './target-login.ts'
import { createTokenStore } from './token-store.ts'

export type LoginTarget = {
  readonly name: string
  readonly address: TargetAddress
  /** Configuration of the target, which determines the permitted addresses. */
  readonly node: object
}

const maxLogins = 10_000

/** Compiles the login of users at a target. Throws if a file in its settings is unreadable. */
export function compileLogin(
  config: LoginConfig,
  { name: target, address, node }: LoginTarget,
  context: CompileContext,
): TargetLogin {
  const { clientId, folder, issuer, scopes } = config
  const publicUrl = new URL(config.publicUrl)
  const redirectUri = `${publicUrl.origin}${basePathOf(publicUrl)}/oauth/callback`
  const key = sessionKeyOf(config, target, context)
  const url = address.origin + address.path
  const secret = readSecret(config, context)
  const settings = digestOf(JSON.stringify([url, issuer, clientId, scopes, redirectUri, folder]))
  const egress = egressOf({ url, issuer, node }, context)
  // Tokens in memory survive reloads, also those that change the service.
  const store = context.retained(`mcp logins: tokens ${settings}`, () => createTokenStore(folder, key))
  const create = () =>
    createLoginService(
      {
        ...{ target, url, issuer, redirectUri, scopes },
        documentUrl:
          publicUrl.protocol === 'https:' ? publicUrl.origin + documentPathOf(publicUrl) : undefined,
        client: clientId === undefined ? undefined : { id: clientId, secret },
        store: withPrefix(store, settings),
        send: sendUnder(egress, context.send),
      },
      context,
    )
  const service = shareService([target, settings, digestOf(secret ?? ''), egress.key], create, context)
  const links = createLoginLinks(key, redirectUri, () => context.clock.now())
  const userOf = (caller: Pick<Exchange, 'facts'>): LoginUser | undefined => {
    if (!identifiesUser(caller)) return undefined
    const owner = ownerOf(caller)
    return { key: digestOf(JSON.stringify([settings, owner])), name: nameOf(caller) }
  }
  const linkOf = (user: LoginUser) =>
    `${publicUrl.origin}${basePathOf(publicUrl)}/oauth/start?link=${links.sealLink({ user, target })}`
  return {
    ...{ target, publicUrl, links, service },
    link(caller) {
      const user = caller && userOf(caller)
      return user && linkOf(user)
    },
    async token(caller, refused) {
      const user = caller && userOf(caller)
      if (user === undefined) return { kind: 'refused', failure: withoutUser(target, caller) }
      const found = await service.token(user.key, refused)
      if (found.kind === 'token') return found
      if (found.kind === 'unavailable') return { kind: 'refused', failure: unavailable(target) }
      return { kind: 'none', url: linkOf(user) }
    },
  }
}

/** The service of these settings; another one for other settings, such as a new egress policy. */
function shareService(
  settings: readonly string[],
  create: () => LoginService,
  { peers, retained }: CompileContext,
): LoginService {
  const hub = retained('mcp logins: hub', () => createLoginHub(peers))
  const name = digestOf(JSON.stringify(settings))
  return retained(`mcp logins: service ${name}`, () => hub.share(name, create))
}

/** Serves the pages of the logins of an endpoint, before its other policies; undefined without logins. */
export function loginPolicy(
  members: readonly { readonly login?: TargetLogin | undefined }[],
  { memory, clock, retained }: CompileContext,
): Policy | undefined {
  const logins = members.flatMap(({ login }) => login ?? [])
  if (logins.length === 0) return undefined
  const used = retained('mcp logins: completed', () =>
    createReplayCache(memory, { name: 'mcp logins: completed', capacity: maxLogins }, clock),
  )
  const byUrl = Map.groupBy(logins, ({ publicUrl }) => publicUrl.origin + basePathOf(publicUrl))
  const pages = [...byUrl.values()].flatMap((group) =>
    group.slice(0, 1).map(({ publicUrl, links }) => {
      const serviceOf = (target: string) => group.find((one) => one.target === target)?.service
      return { host: publicUrl.host, ...createLoginPages({ publicUrl, links, serviceOf, used }) }
    }),
  )
  const places = pages.flatMap((page) =>
    [page.start, page.callback, page.document].map((path) => ({ path, page })),
  )
  const byPath = Map.groupBy(places, ({ path }) => path)
  return {
    name: 'mcp logins',
    onRequest(exchange) {
      const { path, host } = exchange.facts.request
      const found = byPath.get(path)
      const [first] = found ?? []
      return (found?.find(({ page }) => page.host === host) ?? first)?.page.handle(exchange)
    },
  }
}

function sessionKeyOf(
  { folder }: LoginConfig,
  target: string,
  { sessionKey, processKey }: CompileContext,
): Uint8Array {
  const key = sessionKey === undefined ? undefined : readSessionKey(sessionKey)
  if (key === undefined && folder !== undefined)
    throw new Error(
      `target "${target}": oauth.folder requires config.session.key or SESSION_KEY, which encrypts the tokens`,
    )
  return key ?? processKey
}

function readSecret({ clientSecret }: LoginConfig, { readFile }: CompileContext): string | undefined {
  return typeof clientSecret === 'object' ? readFile(clientSecret.file).trim() : clientSecret
}

/** Separates the values of targets in a folder. */
function withPrefix(store: ReturnType<typeof createTokenStore>, settings: string): typeof store {
  const keyOf = (key: string) => `${settings} ${key}`
  return {
    read: (key) => store.read(keyOf(key)),
    write: (key, value) => store.write(keyOf(key), value),
    remove: (key) => store.remove(keyOf(key)),
  }
}

/**
 * Addresses of login requests: those of configured hosts under their policy, and public ones for servers that
 * only the metadata of the target names.
 */
function egressOf(
  { url, issuer, node }: { url: string; issuer: string | undefined; node: object },
  context: CompileContext,
): EgressPolicy {
  const configured = context.egress.of(node)
  const own = ownPorts(context)
  const chosen = compileClientChosenPolicy(context.egress.document, {
    allowed: [],
    isOwnPort: (port) => own.ports.has(port),
  })
  const hosts = new Set([url, issuer ?? url].map((text) => new URL(text).hostname.replace(/^\[|\]$/g, '')))
  return {
    key: `mcp logins ${[...hosts].join(' ')} ${configured.key} ${chosen.key}`,
    refuses: (target) => (hosts.has(target.host) ? configured : chosen).refuses(target),
  }
}

const maxNameChars = 200

/** Name of the user on pages. Users can often change their names, so the issuer and `sub` are shown too. */
export function nameOf({ facts: { jwt, apiKey, basicAuth } }: Pick<Exchange, 'facts'>): string {
  const { email, email_verified: isVerified, preferred_username: username, name, sub, iss } = jwt ?? {}
  const claims = [isVerified === true ? email : undefined, username, name]
  const readable = [...claims, basicAuth?.username, apiKey?.['name'], apiKey?.['id']].find(isShown)
  const identity = [sub, iss].filter(isShown)
  const texts = [readable, ...identity].filter(isShown).map((text) => text.slice(0, maxNameChars))
  return texts.length === 0 ? 'without a name' : texts.join(', ')
}

function isShown(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function withoutUser(target: string, caller: Pick<Exchange, 'facts'> | undefined): TargetFailure {
  const isApplication = caller?.facts.jwt !== undefined && !identifiesUser(caller)
  const message = isApplication
    ? `target "${target}" requires a token with "sub" or "sid": the client is the same for all users of an application`
    : `target "${target}" requires an authenticated user: configure authentication of this endpoint`
  return { kind: 'refused', status: 403, code: -32600, message }
}

function unavailable(target: string): TargetFailure {
  const message = `target "${target}": the authorization server is not available`
  return { kind: 'refused', status: 502, code: -32603, message }
}
