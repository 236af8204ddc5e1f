import { describe, expect, it } from 'vitest'
import { mayBeCredential } from './credential-values.ts'

const roots = new Set(['request', 'source', 'jwt'])

describe('expressions that may read credentials', () => {
  it.each([
    'request.headers["authorization"]',
    'request.headers["x-key"]',
    'request.headers["x-user-pwd"]',
    "request.headers['X-Amzn-Oidc-Data']",
    'request.headers["x-hub-signature-256"]',
    'request.headers["x-jwt"] + "a"',
    'request.headers["sec-websocket-protocol"]',
    'request.headers["a"] + request.headers["x-saml-assertion"]',
    'request.query',
    'jwt.rawToken.unredacted()',
    'apiKey.key.unredacted()',
    'source.connectHeaders["proxy-authorization"]',
  ])('include %s', (source) => expect(mayBeCredential({ roots, source })).toBe(true))

  it.each([
    'request.headers["x-team"]',
    'request.headers["x-team"] == "key"',
    'request.key',
    'request.headers["x-team"] + jwt.key',
    'source.address',
    'source.connectHeaders["user-agent"]',
    'jwt.sub',
  ])('do not include %s', (source) => expect(mayBeCredential({ roots, source })).toBe(false))
})
