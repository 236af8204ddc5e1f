import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import type { EgressPolicy, IdentityHosts } from '../../../net/egress/egress.ts'
import type { OutgoingRequest } from '../../../net/http-client/send.ts'
import { noCaller } from '../caller.ts'
import type { BackendAuthConfig } from '../config.ts'
import { compileAuthorize } from '../credentials.ts'
import { machineIdentityOf } from './machine-identity.ts'
import type { CredentialUse } from './permit.ts'

const implicit: BackendAuthConfig = { azure: { implicit: {} } }
const environment = { AZURE_TENANT_ID: 't', AZURE_CLIENT_ID: 'app', AZURE_CLIENT_SECRET: 's' }
const cloud = 'https://contoso.openai.azure.com'
const other = 'https://other.test'

/** Places the credential on a request; hosts by object of the configuration. */
async function placed(
  auth: BackendAuthConfig,
  origin: string | undefined,
  { use, hosts }: { use: Partial<CredentialUse>; hosts: Map<object, IdentityHosts | undefined> },
) {
  const sent: OutgoingRequest[] = []
  const base = fixtureContext()
  const policyOf = (node: object): EgressPolicy => ({
    key: '',
    refuses: () => undefined,
    identityHosts: hosts.has(node) ? hosts.get(node) : 'any',
  })
  const context = {
    ...base,
    environment,
    egress: { ...base.egress, of: policyOf },
    send: async (request: OutgoingRequest) => {
      sent.push(request)
      const body = Buffer.from(JSON.stringify({ access_token: 'machine', expires_in: 3600 }))
      return { status: 200, headers: {}, body }
    },
  }
  const request = { headers: {} as Record<string, string>, path: '/', origin }
  try {
    await compileAuthorize(auth, context, use)?.apply(request, noCaller)
  } catch (error) {
    return { refused: `${(error as Error).cause}`, requests: sent.length, headers: request.headers }
  }
  return { token: request.headers['authorization'], requests: sent.length }
}

const node = { host: 'x' }
const granted = { token: 'Bearer machine', requests: 1 }
const denied = { refused: expect.stringContaining('backendAuth.azure'), requests: 0, headers: {} }

describe('configuration that may not use identities of the machine', () => {
  const hosts = new Map([[implicit, undefined]])

  it.each([cloud, other, undefined])('has no token for %s, and requests none', async (origin) => {
    expect(await placed(implicit, origin, { use: { destination: node }, hosts })).toEqual(denied)
  })

  it('may use its own secret', async () => {
    const secret = { tenant_id: 't', client_id: 'c', client_secret: 's' }
    const own: BackendAuthConfig = { azure: { explicitConfig: { clientSecret: secret } } }
    const api = new Map<object, undefined>([
      [own, undefined],
      [node, undefined],
    ])
    expect(await placed(own, other, { use: { destination: node }, hosts: api })).toEqual(granted)
  })

  it('has none that its provider implies', async () => {
    const model = { name: 'm' }
    const use = { source: model, destination: model }
    expect(await placed(implicit, cloud, { use, hosts: new Map([[model, undefined]]) })).toEqual(denied)
  })
})

describe('a destination of the file', () => {
  it.each([cloud, other, 'http://10.0.0.1:80', undefined])('receives the token at %s', async (origin) => {
    expect(await placed(implicit, origin, { use: { destination: node }, hosts: new Map() })).toEqual(granted)
  })
})

describe.each([undefined, 'cloud', 'own'] as const)('a destination whose policy has %s', (permission) => {
  const hosts = new Map([[node, permission]])
  const use = { destination: node }

  it.each([
    cloud,
    'https://contoso.openai.azure.com:443',
    'https://CONTOSO.openai.azure.com.',
    'https://contoso.services.ai.azure.com',
    'https://contoso.cognitiveservices.azure.us',
  ])('receives the token at %s', async (origin) => {
    expect(await placed(implicit, origin, { use, hosts })).toEqual(granted)
  })

  it.each([
    ...[other, undefined, 'http://contoso.openai.azure.com', 'https://openai.azure.com'],
    ...[
      'https://evil-openai.azure.com',
      'https://openai.azure.com.other.test',
      'https://a.azurewebsites.net',
    ],
    'https://contoso.openai.azure.com@other.test',
    'https://other.test/.openai.azure.com',
  ])('receives none at %s', async (origin) => {
    expect(await placed(implicit, origin, { use, hosts })).toEqual(denied)
  })

  it.each([
    { insecure: true },
    { insecureHost: true },
    { hostname: 'other.test' },
    { root: { file: '/ca.pem' } },
    { subjectAltNames: ['other.test'] },
  ])('receives none with TLS %j', async (backendTLS) => {
    const unverified = { ...use, connection: { backendTLS } } as Partial<CredentialUse>
    expect(await placed(implicit, cloud, { use: unverified, hosts })).toEqual(denied)
  })
})

describe('a file that the config API writes', () => {
  const insecure = { insecure: true }
  const backend = { host: 'other.test:443' }
  const route = { backends: [backend], policies: { backendAuth: implicit, backendTLS: insecure } }
  const stranger = { insecure: true }
  const parts = [implicit, backend, insecure, stranger]
  const hosts = new Map<object, IdentityHosts | undefined>(parts.map((part) => [part, 'own']))
  const use = { destination: backend, owner: route, connection: route.policies }

  it('names hosts together with the credential', async () => {
    expect(await placed(implicit, other, { use, hosts })).toEqual(granted)
  })

  it.each([
    { ...use, owner: backend },
    { ...use, owner: undefined },
    { ...use, destination: stranger },
    { ...use, connection: { backendTLS: stranger } },
    { ...use, connection: { backendTunnel: stranger } },
    { ...use, source: stranger },
  ])('names no host, TLS or proxy elsewhere (%#)', async (apart) => {
    expect(await placed(implicit, other, { use: apart, hosts })).toEqual(denied)
  })
})

describe('backendAuth.gcp', () => {
  const key = { type: 'service_account', client_email: 'a@b.test', private_key: 'pem' }
  const user = { type: 'authorized_user', client_id: 'c', client_secret: 's', refresh_token: 'r' }
  const federated = {
    type: 'external_account',
    audience: 'a',
    subject_token_type: 't',
    credential_source: { file: '/etc/passwd' },
  }
  const name = (credential: unknown) => machineIdentityOf({ gcp: { credential } })?.name

  it.each([undefined, JSON.stringify(federated), '{}', 'text', null])(
    '%s is of the machine',
    (credential) => {
      expect(name(credential)).toBe('gcp')
    },
  )

  it.each([JSON.stringify(key), JSON.stringify(user), { file: '/key.json' }])('%j is not', (credential) => {
    expect(name(credential)).toBeUndefined()
  })

  it.each([
    ['aiplatform.googleapis.com', true],
    ['us-central1-aiplatform.googleapis.com', true],
    ['aiplatform.eu.rep.googleapis.com', true],
    ['googleapis.com.other.test', false],
    ['service-abc.a.run.app', false],
    ['evilgoogleapis.com', false],
  ])('%s is a host of the cloud: %s', (host, expected) => {
    expect(machineIdentityOf({ gcp: {} })?.identity.isCloudHost(host)).toBe(expected)
  })
})
