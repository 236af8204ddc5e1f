import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import { noCaller } from '../caller.ts'
import { compileAuthorize } from '../credentials.ts'
import type { GoogleAuthConfig } from './config.ts'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

type Answer = { status?: number; body: unknown }

const jwt = (claims: object) =>
  `eyJhbGciOiJSUzI1NiJ9.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`
const identity = jwt({ iat: 1_000, exp: 4_600 })

/** Answers like the endpoints of Google, by path. */
function answer({ path, body }: OutgoingRequest): Answer {
  if (path.includes(':generateAccessToken'))
    return { body: { accessToken: 'impersonated', expireTime: '2026-01-01T00:00:00Z' } }
  if (path.includes(':generateIdToken')) return { body: { token: identity } }
  if (path.includes('/identity?')) return { body: identity }
  if (path.startsWith('/subject')) return { body: { id: 'from-url' } }
  const wantsIdentity =
    String(body).startsWith('grant_type') && claimsOf(body)['target_audience'] !== undefined
  if (wantsIdentity) return { body: { id_token: identity } }
  return { body: { access_token: 'ya29.token', expires_in: 3599, id_token: identity } }
}

function formOf(body: unknown): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(String(body)))
}

function claimsOf(body: unknown): Record<string, unknown> {
  const { assertion = '' } = formOf(body)
  const [, claims = ''] = assertion.split('.')
  return claims === '' ? {} : JSON.parse(Buffer.from(claims, 'base64url').toString())
}

function fixture(
  environment: Record<string, string> = {},
  respond: (request: OutgoingRequest) => Answer = answer,
) {
  const sent: OutgoingRequest[] = []
  const files = new Map<string, string>()
  const readFile = (path: string) => {
    const text = files.get(path)
    if (text === undefined) throw new Error(`${path} is not readable`)
    return text
  }
  const context = {
    ...fixtureContext(),
    environment,
    readFile,
    readFileNow: readFile,
    send: async (request: OutgoingRequest): Promise<Reply> => {
      sent.push(request)
      const { status = 200, body } = respond(request)
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      return { status, headers: {}, body: Buffer.from(text) }
    },
  }
  const compile = (gcp: GoogleAuthConfig) => compileAuthorize({ gcp }, context, { destination: gcp })
  async function headersOf(gcp: GoogleAuthConfig, origin = 'https://service.a.run.app:8443') {
    const request = { headers: {}, path: '/', origin }
    await compile(gcp)?.apply(request, noCaller)
    return request.headers
  }
  return { sent, files, context, compile, headersOf }
}

const account = {
  type: 'service_account',
  client_email: 'gateway@project.iam.gserviceaccount.com',
  private_key: pem,
  private_key_id: 'key-7',
  token_uri: 'https://oauth2.googleapis.com/token',
}
const user = { type: 'authorized_user', client_id: 'c', client_secret: 'hush', refresh_token: 'refresh' }
const external = {
  type: 'external_account',
  audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x',
  subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  token_url: 'https://sts.googleapis.com/v1/token',
  credential_source: { file: '/var/token' },
}
const impersonation =
  'https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/s@p.iam.gserviceaccount.com:generateAccessToken'

const inline = (credential: object): GoogleAuthConfig => ({ credential: JSON.stringify(credential) })

describe('a key of a service account', () => {
  it('requests an access token with a signed assertion', async () => {
    const { sent, headersOf } = fixture()
    expect(await headersOf(inline(account))).toEqual({ authorization: 'Bearer ya29.token' })
    expect(sent[0]).toMatchObject({ origin: 'https://oauth2.googleapis.com', path: '/token', method: 'POST' })
    expect(formOf(sent[0]?.body)['grant_type']).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')
    const { assertion = '' } = formOf(sent[0]?.body)
    const [head = '', claims = '', signature = ''] = assertion.split('.')
    expect(JSON.parse(Buffer.from(head, 'base64url').toString())).toEqual({
      alg: 'RS256',
      typ: 'JWT',
      kid: 'key-7',
    })
    expect(claimsOf(sent[0]?.body)).toEqual({
      iss: account.client_email,
      sub: account.client_email,
      aud: account.token_uri,
      iat: 5,
      exp: 3605,
      scope: 'https://www.googleapis.com/auth/cloud-platform',
    })
    const key = createPublicKey(pem)
    expect(verify('sha256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url'))).toBe(
      true,
    )
  })

  it('requests an id token for the host of the backend, or for an audience', async () => {
    const { sent, headersOf } = fixture()
    const config = { ...inline(account), type: 'idToken' } as const
    expect(await headersOf(config)).toEqual({ authorization: `Bearer ${identity}` })
    await headersOf({ ...config, audience: 'iap-client' })
    expect(sent.map(({ body }) => claimsOf(body)['target_audience'])).toEqual([
      'https://service.a.run.app',
      'iap-client',
    ])
    await headersOf(config)
    expect(sent).toHaveLength(2)
  })

  it('uses a token until shortly before its end, with one request for concurrent calls', async () => {
    const { sent, context, headersOf } = fixture()
    await Promise.all([headersOf(inline(account)), headersOf(inline(account))])
    context.clock.advance(2_000_000)
    await headersOf(inline(account))
    expect(sent).toHaveLength(1)
    context.clock.advance(1_600_000)
    await headersOf(inline(account))
    expect(sent).toHaveLength(2)
  })

  it.each([
    { status: 400, body: { error: 'invalid_grant', error_description: 'hush' } },
    { status: 403, body: { error: { code: 403, status: 'PERMISSION_DENIED', message: 'hush' } } },
    { status: 200, body: {} },
    { status: 200, body: { access_token: 'with space' } },
    { status: 500, body: 'hush' },
  ])('denies the request after the response %j, without its text', async (response) => {
    const { headersOf } = fixture({}, () => response)
    const failure = await headersOf(inline(account)).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(GatewayError)
    expect(failure).toMatchObject({ code: 'credential_unavailable' })
    expect(`${failure} ${(failure as Error).cause}`).not.toContain('hush')
  })
})

describe('an authorized user', () => {
  it('exchanges the refresh token', async () => {
    const { sent, headersOf } = fixture()
    expect(await headersOf(inline(user))).toEqual({ authorization: 'Bearer ya29.token' })
    expect(formOf(sent[0]?.body)).toEqual({
      grant_type: 'refresh_token',
      client_id: 'c',
      client_secret: 'hush',
      refresh_token: 'refresh',
    })
    expect(await headersOf({ ...inline(user), type: 'idToken' })).toEqual({
      authorization: `Bearer ${identity}`,
    })
  })
})

describe('workload identity federation', () => {
  it('exchanges the token of a file, which is read for each exchange', async () => {
    const { sent, files, context, headersOf } = fixture()
    files.set('/var/token', 'first\n')
    expect(await headersOf(inline(external))).toEqual({ authorization: 'Bearer ya29.token' })
    files.set('/var/token', 'second')
    context.clock.advance(3_700_000)
    await headersOf(inline(external))
    expect(sent.map(({ body }) => formOf(body)['subject_token'])).toEqual(['first', 'second'])
    expect(sent[0]).toMatchObject({ origin: 'https://sts.googleapis.com', path: '/v1/token' })
    expect(formOf(sent[0]?.body)).toMatchObject({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience: external.audience,
      subject_token_type: external.subject_token_type,
    })
  })

  it('exchanges the token of a URL, and requests the token of a service account with it', async () => {
    const { sent, headersOf } = fixture()
    const format = { type: 'json', subject_token_field_name: 'id' }
    const credential = {
      ...external,
      credential_source: { url: 'http://issuer.test/subject?a=1', headers: { 'X-Team': 'a' }, format },
      service_account_impersonation_url: impersonation,
      service_account_impersonation: { token_lifetime_seconds: 1800 },
    }
    expect(await headersOf(inline(credential))).toEqual({ authorization: 'Bearer impersonated' })
    expect(sent[0]).toMatchObject({ path: '/subject?a=1', headers: { 'x-team': 'a' } })
    expect(formOf(sent[1]?.body)['subject_token']).toBe('from-url')
    expect(sent[2]?.headers['authorization']).toBe('Bearer ya29.token')
    expect(JSON.parse(String(sent[2]?.body))).toMatchObject({ lifetime: '1800s' })
    expect(await headersOf({ ...inline(credential), type: 'idToken' })).toEqual({
      authorization: `Bearer ${identity}`,
    })
    expect(sent.at(-1)?.path.endsWith(':generateIdToken')).toBe(true)
  })

  it('has no id tokens without a service account', async () => {
    const { files, headersOf } = fixture()
    files.set('/var/token', 'first')
    await expect(headersOf({ ...inline(external), type: 'idToken' })).rejects.toMatchObject({
      code: 'credential_unavailable',
    })
  })
})

it('impersonates a service account with the login of a user', async () => {
  const { sent, headersOf } = fixture()
  const credential = {
    type: 'impersonated_service_account',
    service_account_impersonation_url: impersonation,
    source_credentials: user,
    delegates: ['d'],
  }
  expect(await headersOf(inline(credential))).toEqual({ authorization: 'Bearer impersonated' })
  expect(JSON.parse(String(sent[1]?.body))).toEqual({
    delegates: ['d'],
    scope: ['https://www.googleapis.com/auth/cloud-platform'],
    lifetime: '3600s',
  })
})

describe('the identity without a configured credential', () => {
  it('is the file of the environment, else the login, else the service account of the machine', async () => {
    const { files, sent, headersOf } = fixture({ HOME: '/login' })
    expect(await headersOf({})).toEqual({ authorization: 'Bearer ya29.token' })
    expect(sent[0]).toMatchObject({
      origin: 'http://metadata.google.internal',
      path: '/computeMetadata/v1/instance/service-accounts/default/token',
      headers: { 'metadata-flavor': 'Google' },
    })
    files.set('/login/.config/gcloud/application_default_credentials.json', JSON.stringify(user))
    await headersOf({})
    expect(formOf(sent[1]?.body)['grant_type']).toBe('refresh_token')

    const named = fixture({ GOOGLE_APPLICATION_CREDENTIALS: '/key.json', HOME: '/login' })
    named.files.set('/key.json', JSON.stringify(account))
    await named.headersOf({})
    expect(claimsOf(named.sent[0]?.body)['iss']).toBe(account.client_email)
  })

  it('requests id tokens of the metadata server', async () => {
    const { sent, headersOf } = fixture({ GCE_METADATA_HOST: 'localhost:42' })
    expect(await headersOf({ type: 'idToken' })).toEqual({ authorization: `Bearer ${identity}` })
    expect(sent[0]?.origin).toBe('http://localhost:42')
    expect(sent[0]?.path.endsWith('/identity?audience=https%3A%2F%2Fservice.a.run.app&format=full')).toBe(
      true,
    )
  })
})

describe('invalid credentials', () => {
  it.each([
    ['{', 'gcp.credential: not a credential of Google: expected JSON'],
    [{ type: 'gdch_service_account' }, 'gcp.credential: type must be service_account, '],
    [{ ...account, client_email: 1 }, 'gcp.credential: client_email must be a text'],
    [{ ...account, token_uri: 'file:///a' }, 'gcp.credential: token_uri must be an https URL'],
    [
      { ...account, private_key: 'secret-text' },
      'gcp.credential: signingKey is not a private key: expected PEM',
    ],
    [
      { ...external, credential_source: { environment_id: 'aws1', url: 'http://169.254.169.254/' } },
      'gcp.credential: credential_source must have file or url',
    ],
  ])('are reported: %j', (credential, message) => {
    const { compile } = fixture()
    const text = typeof credential === 'string' ? credential : JSON.stringify(credential)
    expect(() => compile({ credential: text })).toThrow(message)
  })

  it('are reported with their file', () => {
    const { compile } = fixture()
    expect(() => compile({ credential: { file: '/missing' } })).toThrow('/missing is not readable')
  })
})
