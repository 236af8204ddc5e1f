import { createVerify, generateKeyPairSync } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { endAfter } from '../support/cleanup.ts'
import { call } from '../support/http-call.ts'
import { startOidcProvider } from '../support/mcp-oidc-provider.mjs'
import { type MockServer, startMockServer } from '../support/mock-server.ts'
import { createTokenIssuer, type TokenIssuer } from '../support/token-issuer.ts'
import { type Routing, sharedRouting } from '../support/traffic.ts'
import { until } from '../support/wait.ts'

const secret = 'client-secret-canary-7713'
const basic = `Basic ${Buffer.from(`gateway:${secret}`).toString('base64')}`
const start = sharedRouting()
const at = (path: string) => ({ matches: [{ path: { pathPrefix: path } }] })
const rawToken = { source: { expression: 'jwt.rawToken.unredacted()' } }

function answerJson(response: ServerResponse, status: number, value: object) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

const issued = (token: string, more: object = {}) => ({
  ...{ access_token: token, token_type: 'Bearer', expires_in: 300 },
  ...more,
})

/** Subject of a token, unverified. */
function subjectOf(token: string | null): string {
  return JSON.parse(Buffer.from(token?.split('.')[1] ?? '', 'base64url').toString()).sub
}

describe('credentials of an authorization server', () => {
  let users: TokenIssuer
  let backend: MockServer & { host: string }
  let endpoint: MockServer & { host: string }
  let running: Routing

  async function server(answer: Parameters<typeof startMockServer>[0]) {
    const started = await startMockServer(answer, 'file')
    return { ...started, host: `127.0.0.1:${started.port}` }
  }

  beforeAll(async () => {
    users = await createTokenIssuer('https://users.test', 'gateway')
    backend = await server((request, response) =>
      answerJson(response, 200, { path: request.path, ...request.headers }),
    )
    endpoint = await server((request, response) => {
      const form = new URLSearchParams(request.text)
      if (request.headers.authorization !== basic) answerJson(response, 401, { error: 'invalid_client' })
      else if (form.get('subject_token') === null) answerJson(response, 400, { error: 'invalid_request' })
      else answerJson(response, 200, issued(`for-${subjectOf(form.get('subject_token'))}`))
    })
    const exchange = {
      ...{ host: endpoint.host, path: '/token', audiences: ['api', 'other'], scopes: ['a', 'b'] },
      ...{ subjectToken: rawToken, clientAuth: { clientId: 'gateway', clientSecret: secret } },
      policies: { http: { requestTimeout: '300ms' } },
    }
    const acting = {
      ...exchange,
      subjectToken: { source: { header: { name: 'x-subject' } } },
      actorToken: {
        source: { header: { name: 'x-actor' } },
        ...{ tokenType: 'urn:ietf:params:oauth:token-type:jwt', enforceMayAct: true },
      },
    }
    running = await start([
      {
        ...at('/exchange'),
        policies: { jwtAuth: { issuer: users.issuer, audiences: ['gateway'], jwks: users.keys } },
        backends: [{ host: backend.host, policies: { backendAuth: { oauthTokenExchange: exchange } } }],
      },
      {
        ...at('/acting'),
        backends: [{ host: backend.host, policies: { backendAuth: { oauthTokenExchange: acting } } }],
      },
    ])
  })

  it('require that the client permits the actor, if so configured', async () => {
    const subject = await users.token({ sub: 'may', may_act: { sub: ['agent', 'other'] } })
    const before = endpoint.seen.length
    const statusFor = async (actor: string, token = subject) => {
      const headers = { 'x-subject': token, 'x-actor': await users.token({ sub: actor }) }
      return (await call(running.port, '/acting', { headers })).status
    }
    expect([await statusFor('agent'), await statusFor('stranger')]).toEqual([200, 403])
    expect(await statusFor('agent', await users.token({ sub: 'may' }))).toBe(403)
    expect(endpoint.seen).toHaveLength(before + 1)
    endpoint.seen.length = before
  })

  const ask = async (token: string) => {
    const { status, text } = await call(running.port, '/exchange', {
      headers: { authorization: `Bearer ${token}` },
    })
    return { status, seen: status === 200 ? (JSON.parse(text) as IncomingHttpHeaders) : undefined, text }
  }

  it('exchange the token of each client once, and reach the backend in its place', async () => {
    const tokens = await Promise.all(['ada', 'bob'].map((sub) => users.token({ sub })))
    const replies = await Promise.all([...tokens, ...tokens, ...tokens].map(ask))
    const expected = ['Bearer for-ada', 'Bearer for-bob']
    expect(replies.map(({ seen }) => seen?.authorization)).toEqual([...expected, ...expected, ...expected])
    expect(endpoint.seen).toHaveLength(2)
    const form = new URLSearchParams(endpoint.seen[0]?.text)
    expect([...form].filter(([name]) => name !== 'subject_token')).toEqual([
      ['grant_type', 'urn:ietf:params:oauth:grant-type:token-exchange'],
      ['subject_token_type', 'urn:ietf:params:oauth:token-type:access_token'],
      ['audience', 'api'],
      ['audience', 'other'],
      ['scope', 'a b'],
    ])
  })

  it.each([
    [
      'a refused token',
      401,
      (response: ServerResponse) => answerJson(response, 400, { error: 'invalid_grant' }),
    ],
    [
      'denied access',
      403,
      (response: ServerResponse) => answerJson(response, 403, { error: 'access_denied' }),
    ],
    [
      'a refused gateway',
      502,
      (response: ServerResponse) => answerJson(response, 401, { error: 'invalid_client' }),
    ],
    ['a failed server', 502, (response: ServerResponse) => response.writeHead(500).end('oops')],
    ['garbage', 502, (response: ServerResponse) => response.end('<html>')],
    ['no token', 502, (response: ServerResponse) => answerJson(response, 200, { token_type: 'Bearer' })],
    [
      'a token with a line break',
      502,
      (response: ServerResponse) => answerJson(response, 200, issued('a\r\nb: c')),
    ],
    [
      'another token type',
      502,
      (response: ServerResponse) => answerJson(response, 200, issued('t', { token_type: 'mac' })),
    ],
    ['a huge response', 502, (response: ServerResponse) => response.end(Buffer.alloc(1_000_000, ' '))],
    ['no response', 502, () => {}],
    ['a closed connection', 502, (response: ServerResponse) => response.destroy()],
  ])('deny the request after %s', async (name, status, answer) => {
    const token = await users.token({ sub: name.replaceAll(' ', '-'), secret: 'subject-canary-4471' })
    const before = backend.seen.length
    endpoint.next((_, response) => answer(response))
    const reply = await ask(token)
    expect(reply.status).toBe(status)
    expect(reply.text).not.toContain('subject-canary')
    // The pause after a failure, then a working server.
    const later = await until('an exchanged token', async () => {
      const next = await ask(token)
      return next.status === 200 ? next : undefined
    })
    expect(later.seen?.authorization).toBe(`Bearer for-${name.replaceAll(' ', '-')}`)
    expect(backend.seen.length).toBe(before + 1)
  })

  it('are not those of copies, which have no token of the client either', async () => {
    const copies = await server((_, response) => answerJson(response, 200, {}))
    const exchange = {
      ...{ host: endpoint.host, path: '/token', clientAuth: { clientId: 'gateway', clientSecret: secret } },
      subjectToken: { source: { header: { name: 'x-subject' } } },
    }
    const { port } = await start([
      {
        policies: { requestMirror: { backend: { host: copies.host } } },
        backends: [
          { host: backend.host, policies: { backendAuth: { oauthTokenExchange: exchange } } },
          { host: backend.host, weight: 0 },
        ],
      },
      {
        ...at('/others'),
        policies: { requestMirror: { backend: { host: copies.host } } },
        backends: [
          { host: backend.host },
          { host: backend.host, weight: 0, policies: { backendAuth: { oauthTokenExchange: exchange } } },
        ],
      },
      {
        ...at('/tools'),
        policies: { requestMirror: { backend: { host: copies.host } } },
        backends: [
          {
            mcp: {
              targets: [
                {
                  ...{ name: 'a', mcp: { host: `http://${backend.host}/mcp` } },
                  policies: { backendAuth: { oauthTokenExchange: exchange } },
                },
              ],
            },
          },
        ],
      },
    ])
    const subject = await users.token({ sub: 'copied' })
    const reply = await call(port, '/', { headers: { 'x-subject': subject, 'x-other': '1' } })
    expect(JSON.parse(reply.text)).toMatchObject({ authorization: 'Bearer for-copied' })
    expect(await until('a copy', () => copies.seen.length === 1)).toBe(true)
    expect(copies.seen[0]?.headers).toMatchObject({ 'x-other': '1' })
    expect((await call(port, '/others')).status).toBe(200)
    expect(await until('a copy without a token', () => copies.seen.length === 2)).toBe(true)
    const types = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    }
    const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await call(port, '/tools', { method: 'POST', headers: { 'x-subject': subject, ...types }, body })
    expect(await until('a copy of a message', () => copies.seen.length === 3)).toBe(true)
    expect(JSON.stringify(copies.seen.map((copy) => copy.headers))).not.toContain(subject)
  })

  it('do not appear in the log', async () => {
    const token = await users.token({ sub: 'eve' })
    await ask(token)
    const log = running.gateway.stdout() + running.gateway.stderr()
    for (const text of [secret, basic.slice(6), token, 'for-eve', 'for-ada']) expect(log).not.toContain(text)
  })

  it('are requested from an OpenID provider with client credentials', async () => {
    const provider = await startOidcProvider({
      ...{ resource: 'https://api.test', claims: {}, registration: false, tokenExpiresInSeconds: () => 300 },
      clients: [
        {
          ...{ client_id: 'gateway', client_secret: secret, grant_types: ['client_credentials'] },
          ...{ redirect_uris: [], response_types: [], token_endpoint_auth_method: 'client_secret_post' },
        },
      ],
    })
    endAfter('test', () => provider.close())
    const clientAuth = { clientId: 'gateway', clientSecret: secret, method: 'clientSecretPost' }
    const oauthTokenExchange = {
      ...{ host: provider.issuer, path: '/token', grantType: 'clientCredentials', clientAuth },
      ...{ scopes: ['mcp'], authorizationLocation: { header: { name: 'x-token' } } },
    }
    const { port } = await start([
      { policies: { backendAuth: { oauthTokenExchange } }, backends: [{ host: backend.host }] },
    ])
    const seen = JSON.parse((await call(port, '/')).text)
    expect(seen['x-token']).toMatch(/^ey[\w-]+\.ey[\w-]+\.[\w-]+$/)
    expect(JSON.parse((await call(port, '/')).text)['x-token']).toBe(seen['x-token'])
  })

  it('cross applications with an assertion of the identity provider', async () => {
    const provider = await server((request, response) => {
      const form = new URLSearchParams(request.text)
      const isExchange =
        form.get('requested_token_type')?.endsWith(':id-jag') && form.get('audience') === 'https://as.test'
      const idJag = { issued_token_type: 'urn:ietf:params:oauth:token-type:id-jag', token_type: 'N_A' }
      if (isExchange)
        answerJson(response, 200, issued(`jag.${subjectOf(form.get('subject_token'))}.x`, idJag))
      else answerJson(response, 400, { error: 'invalid_request' })
    })
    const resource = await server((request, response) => {
      const form = new URLSearchParams(request.text)
      const isBearer = form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer'
      if (isBearer && form.get('client_id') === 'at-resource')
        answerJson(response, 200, issued(`access-${form.get('assertion')}`))
      else answerJson(response, 400, { error: 'invalid_grant' })
    })
    const crossAppAccess = {
      identityProvider: { host: provider.host, clientAuth: { clientId: 'gateway', clientSecret: secret } },
      resourceAuthorizationServer: {
        host: `http://${resource.host}`,
        clientAuth: { clientId: 'at-resource', clientSecret: secret, method: 'clientSecretPost' },
      },
      audience: 'https://as.test',
      scopes: ['todos.read'],
    }
    const { port } = await start([
      { policies: { backendAuth: { crossAppAccess } }, backends: [{ host: backend.host }] },
    ])
    const idToken = await users.token({ sub: 'ada' })
    const reply = await call(port, '/', { headers: { authorization: `Bearer ${idToken}` } })
    expect(JSON.parse(reply.text).authorization).toBe('Bearer access-jag.ada.x')
    const without = await call(port, '/')
    expect([without.status, without.headers['www-authenticate']]).toEqual([401, 'Bearer'])
  })

  it('are signed with a key of the gateway', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const signingKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    const jwtSign = { signingKey, kid: 'one', claims: { iss: 'gateway', aud: ['api'] }, ttl: '60s' }
    const { port } = await start([
      { policies: { backendAuth: { jwtSign } }, backends: [{ host: backend.host }] },
    ])
    const { authorization } = JSON.parse((await call(port, '/')).text)
    const [header, payload, signature = ''] = authorization.slice(7).split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
    expect(claims).toMatchObject({ iss: 'gateway', aud: ['api'] })
    expect(claims.exp - claims.iat).toBe(70)
    const isValid = createVerify('sha256')
      .update(`${header}.${payload}`)
      .verify(publicKey, signature, 'base64url')
    expect(isValid).toBe(true)
  })

  it('are sent in the query or in a cookie', async () => {
    const keyed = (location: object) => ({ backendAuth: { key: { value: 'own', location } } })
    const { port } = await start([
      {
        ...at('/query'),
        policies: keyed({ queryParameter: { name: 'key' } }),
        backends: [{ host: backend.host }],
      },
      { ...at('/cookie'), policies: keyed({ cookie: { name: 'key' } }), backends: [{ host: backend.host }] },
    ])
    expect(JSON.parse((await call(port, '/query?a=1&key=client')).text).path).toBe('/query?a=1&key=own')
    const headers = { cookie: 'a=1; key=client' }
    expect(JSON.parse((await call(port, '/cookie', { headers })).text).cookie).toBe('a=1; key=own')
  })
})
