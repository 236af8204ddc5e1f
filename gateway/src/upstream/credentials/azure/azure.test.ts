import { describe, expect, it } from 'vitest'
import { fixtureContext } from '../../../../test/fixtures/pipeline.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import { noCaller } from '../caller.ts'
import { compileAuthorize } from '../credentials.ts'
import type { AzureAuthConfig } from './config.ts'

type Answer = { status?: number; body: unknown }

function fixture(environment: Record<string, string> = {}, answer: () => Answer = accepted) {
  const sent: OutgoingRequest[] = []
  const base = fixtureContext()
  const state = { token: 'token' }
  const context = {
    ...base,
    environment,
    readFileNow: (path: string) => `${state.token}-of-${path}\n`,
    send: async (request: OutgoingRequest): Promise<Reply> => {
      sent.push(request)
      const { status = 200, body } = answer()
      return { status, headers: {}, body: Buffer.from(JSON.stringify(body)) }
    },
  }
  const compile = (azure: AzureAuthConfig) => compileAuthorize({ azure }, context)
  async function authorizationOf(azure: AzureAuthConfig, origin = 'https://contoso.openai.azure.com') {
    const request = { headers: {}, path: '/', origin }
    await compile(azure)?.apply(request, noCaller)
    return request.headers
  }
  return { sent, state, context, compile, authorizationOf }
}

const accepted = (): Answer => ({ body: { access_token: 'entra', expires_in: 3600, token_type: 'Bearer' } })

const clientSecret = {
  explicitConfig: { clientSecret: { tenant_id: 't/1', client_id: 'app', client_secret: 'hush' } },
} satisfies AzureAuthConfig

const bodyOf = (request: OutgoingRequest | undefined) =>
  Object.fromEntries(new URLSearchParams(String(request?.body)))

describe('an application with a secret', () => {
  it('requests a token for the scope of the host', async () => {
    const { sent, authorizationOf } = fixture()
    expect(await authorizationOf(clientSecret)).toEqual({ authorization: 'Bearer entra' })
    expect(sent[0]).toMatchObject({
      origin: 'https://login.microsoftonline.com',
      path: '/t%2F1/oauth2/v2.0/token',
      method: 'POST',
    })
    expect(bodyOf(sent[0])).toEqual({
      grant_type: 'client_credentials',
      scope: 'https://cognitiveservices.azure.com/.default',
      client_id: 'app',
      client_secret: 'hush',
    })
  })

  it.each([
    [undefined, 'https://x.services.ai.azure.com', 'https://ai.azure.com/.default'],
    [undefined, 'https://x.services.ai.azure.com:443', 'https://ai.azure.com/.default'],
    [undefined, 'https://services.ai.azure.com.evil.test', 'https://cognitiveservices.azure.com/.default'],
    ['api://own', 'https://x.services.ai.azure.com', 'api://own'],
  ])('with scope %s requests for %s a token for %s', async (scope, origin, expected) => {
    const { sent, authorizationOf } = fixture()
    await authorizationOf({ ...clientSecret, scope }, origin)
    expect(bodyOf(sent[0])).toMatchObject({ scope: expected })
  })

  it('uses a token until shortly before its end, also after a reload', async () => {
    const { sent, context, authorizationOf } = fixture()
    await authorizationOf(clientSecret)
    await authorizationOf(clientSecret)
    context.clock.advance(2_000_000)
    await authorizationOf(clientSecret)
    expect(sent).toHaveLength(1)
    context.clock.advance(1_600_000)
    await authorizationOf(clientSecret)
    expect(sent).toHaveLength(2)
  })

  it('shares one request between concurrent calls', async () => {
    const { sent, authorizationOf } = fixture()
    await Promise.all([authorizationOf(clientSecret), authorizationOf(clientSecret)])
    expect(sent).toHaveLength(1)
  })

  it('requests tokens at the authority of the environment', async () => {
    const { sent, authorizationOf } = fixture({ AZURE_AUTHORITY_HOST: 'https://login.microsoftonline.us/' })
    await authorizationOf(clientSecret)
    expect(sent[0]?.origin).toBe('https://login.microsoftonline.us')
  })

  it.each([
    { status: 401, body: { error: 'invalid_client', error_description: 'AADSTS7000215 hush' } },
    { status: 400, body: { error: 'invalid_request', error_description: 'hush' } },
    { status: 200, body: {} },
    { status: 200, body: { access_token: 'with space' } },
    { status: 500, body: 'hush' },
  ])('denies the request after the response %j, without its text', async (response) => {
    const { authorizationOf } = fixture({}, () => response)
    const failure = await authorizationOf(clientSecret).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(GatewayError)
    expect(failure).toMatchObject({ code: 'credential_unavailable' })
    expect(`${failure} ${(failure as Error).cause}`).not.toContain('hush')
  })
})

describe('a workload identity', () => {
  const environment = {
    AZURE_TENANT_ID: 'tenant',
    AZURE_CLIENT_ID: 'app',
    AZURE_FEDERATED_TOKEN_FILE: '/var/token',
  }
  const workload = { explicitConfig: { workloadIdentity: {} } } satisfies AzureAuthConfig

  it('sends the token of the service account as assertion', async () => {
    const { sent, authorizationOf } = fixture(environment)
    await authorizationOf(workload)
    expect(bodyOf(sent[0])).toMatchObject({
      client_id: 'app',
      client_assertion: 'token-of-/var/token',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    })
  })

  it('reads the token of the service account for each request', async () => {
    const { sent, state, context, authorizationOf } = fixture(environment)
    await authorizationOf(workload)
    state.token = 'replaced'
    context.clock.advance(3_600_000)
    await authorizationOf(workload)
    expect(sent.map((request) => bodyOf(request)['client_assertion'])).toEqual([
      'token-of-/var/token',
      'replaced-of-/var/token',
    ])
  })

  it('requires its environment variables', () => {
    const { compile } = fixture({ AZURE_TENANT_ID: 'tenant' })
    expect(() => compile(workload)).toThrow(
      'azure.workloadIdentity: the environment variable AZURE_CLIENT_ID is not set',
    )
  })
})

describe('a managed identity', () => {
  const managed = { explicitConfig: { managedIdentity: {} } } satisfies AzureAuthConfig

  it('requests a token of the metadata service', async () => {
    const { sent, authorizationOf } = fixture()
    expect(await authorizationOf(managed)).toEqual({ authorization: 'Bearer entra' })
    expect(sent[0]).toMatchObject({
      origin: 'http://169.254.169.254',
      path: '/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fcognitiveservices.azure.com',
      method: 'GET',
      headers: { metadata: 'true' },
    })
  })

  it.each([
    [{ clientId: 'a' }, 'client_id=a'],
    [{ objectId: 'b' }, 'object_id=b'],
    [{ resourceId: '/c' }, 'msi_res_id=%2Fc'],
  ])('requests the token of %j', async (userAssignedIdentity, parameter) => {
    const { sent, authorizationOf } = fixture()
    await authorizationOf({
      explicitConfig: { managedIdentity: { userAssignedIdentity } },
    } as AzureAuthConfig)
    expect(sent[0]?.path.endsWith(`&${parameter}`)).toBe(true)
  })

  it('requests a token of App Service, whose end is a time', async () => {
    const answer = () => ({ body: { access_token: 'entra', expires_on: String(5 + 3600) } })
    const environment = { IDENTITY_ENDPOINT: 'http://localhost:42/msi/token', IDENTITY_HEADER: 'id' }
    const { sent, context, authorizationOf } = fixture(environment, answer)
    await authorizationOf(managed)
    expect(sent[0]).toMatchObject({
      origin: 'http://localhost:42',
      path: '/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fcognitiveservices.azure.com',
      headers: { 'x-identity-header': 'id' },
    })
    context.clock.advance(2_000_000)
    await authorizationOf(managed)
    expect(sent).toHaveLength(1)
  })

  it.each([
    { status: 400, body: { error: 'invalid_request' } },
    { status: 200, body: { token: 'x' } },
    { status: 200, body: [] },
  ])('denies the request after the response %j', async (response) => {
    const { authorizationOf } = fixture({}, () => response)
    await expect(authorizationOf(managed)).rejects.toMatchObject({ code: 'credential_unavailable' })
  })
})

describe('the implicit identity', () => {
  const implicit = { implicit: {} } satisfies AzureAuthConfig
  const workload = { AZURE_TENANT_ID: 't', AZURE_CLIENT_ID: 'app', AZURE_FEDERATED_TOKEN_FILE: '/f' }

  it.each([
    ['an application with a secret', { ...workload, AZURE_CLIENT_SECRET: 's' }, 'client_secret=s'],
    ['a workload identity', workload, 'client_assertion=token-of-%2Ff'],
  ])('is %s by the environment', async (_, environment, expected) => {
    const { sent, authorizationOf } = fixture(environment)
    await authorizationOf(implicit)
    expect(String(sent[0]?.body)).toContain(expected)
  })

  it('is the managed identity otherwise, with the client id of the environment', async () => {
    const { sent, authorizationOf } = fixture({ AZURE_CLIENT_ID: 'app' })
    await authorizationOf(implicit)
    expect(sent[0]?.path).toContain('&client_id=app')
  })
})
