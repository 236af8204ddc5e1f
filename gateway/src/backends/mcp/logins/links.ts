import { createHash, hkdfSync, randomBytes } from 'node:crypto'
import { sealText, unsealText } from '../../../identity/sealed-text.ts'
import { type JsonObject, parseJsonObject } from '../../../lib/json/json.ts'

/** A user of the gateway, as in links of a login. */
export type LoginUser = {
  /** Key of the user's tokens. */
  readonly key: string
  /** Name on pages. */
  readonly name: string
}

/** Authorization server and client of a login. Its codes and tokens are valid for both only. */
export type LoginOrigin = {
  readonly issuer: string
  readonly clientId: string
}

/** A login in progress, in `state` of the authorization request. */
export type LoginState = {
  readonly user: LoginUser
  readonly target: string
  readonly verifier: string
  readonly origin: LoginOrigin
  /** Digest of the cookie of the browser that started the login. */
  readonly browser: string
  readonly id: string
}

/** Sealed values of logins, which expire. */
export type LoginLinks = {
  sealLink(link: { user: LoginUser; target: string }): string
  readLink(text: string): { user: LoginUser; target: string } | undefined
  sealState(state: LoginState): string
  readState(text: string): LoginState | undefined
}

/** Users open a link within this time, and complete the login within the same time again. */
const lifetimeMs = 10 * 60_000
const maxChars = 8_192

/** Creates the sealed values of one redirect URI. */
export function createLoginLinks(sessionKey: Uint8Array, redirectUri: string, now: () => number): LoginLinks {
  const keyOf = (purpose: string) =>
    Buffer.from(hkdfSync('sha256', sessionKey, '', `tollgate/mcp-login/1/${purpose} ${redirectUri}`, 32))
  const keys = { link: keyOf('link'), state: keyOf('state') }

  function seal(purpose: keyof typeof keys, value: JsonObject): string {
    return sealText(keys[purpose], JSON.stringify({ ...value, x: now() + lifetimeMs }))
  }

  function unseal(purpose: keyof typeof keys, text: string): JsonObject | undefined {
    const opened = text.length > maxChars ? undefined : unsealText(keys[purpose], text)
    const value = opened === undefined ? undefined : parseJsonObject(opened)
    return typeof value?.['x'] === 'number' && now() < value['x'] ? value : undefined
  }

  return {
    sealLink: ({ user, target }) => seal('link', { u: user.key, n: user.name, t: target }),
    readLink(text) {
      const { u: key, n: name, t: target } = unseal('link', text) ?? {}
      if (typeof key !== 'string' || typeof name !== 'string' || typeof target !== 'string') return undefined
      return { user: { key, name }, target }
    },
    sealState: ({ user, target, verifier, origin, browser, id }) =>
      seal('state', {
        ...{ u: user.key, n: user.name, t: target, v: verifier, b: browser, i: id },
        ...{ s: origin.issuer, c: origin.clientId },
      }),
    readState(text) {
      const value = unseal('state', text) ?? {}
      const { u: key, n: name, t: target, v: verifier, b: browser, i: id, s: issuer, c: clientId } = value
      const texts = [key, name, target, verifier, browser, id, issuer, clientId]
      if (!texts.every((part) => typeof part === 'string')) return undefined
      return {
        user: { key: String(key), name: String(name) },
        target: String(target),
        verifier: String(verifier),
        origin: { issuer: String(issuer), clientId: String(clientId) },
        browser: String(browser),
        id: String(id),
      }
    },
  }
}

/** A random value of 32 bytes: verifier of PKCE, id, cookie. */
export function randomText(): string {
  return randomBytes(32).toString('base64url')
}

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
