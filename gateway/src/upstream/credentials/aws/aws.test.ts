import { describe, expect, it } from 'vitest'
import { fixtureContext, fixtureExchange } from '../../../../test/fixtures/pipeline.ts'
import { verifySignature } from '../../../../test/support/aws/verify-signature.ts'
import { GatewayError } from '../../../lib/gateway-error.ts'
import type { BodySource } from '../../../net/http/body.ts'
import type { OutgoingRequest, Reply } from '../../../net/http-client/send.ts'
import { callerOf, noCaller } from '../caller.ts'
import { compileAuthorize } from '../credentials.ts'
import { awsIdentity } from './aws-identity.ts'
import type { AwsAuthConfig } from './config.ts'

type Answer = { status?: number; text: string }

const origin = 'https://bedrock-runtime.eu-west-1.amazonaws.com'
const keys = { accessKeyId: 'AKID', secretAccessKey: 'hush' }

function fixture(environment: Record<string, string> = {}, answer?: (request: OutgoingRequest) => Answer) {
  const sent: OutgoingRequest[] = []
  const files: Record<string, string> = {}
  const context = {
    ...fixtureContext(),
    environment: { HOME: '/srv/g', ...environment },
    readFileNow(path: string) {
      const text = files[path]
      if (text === undefined) throw new Error(`${path} does not exist`)
      return text
    },
    send: async (request: OutgoingRequest): Promise<Reply> => {
      sent.push(request)
      const { status = 200, text } = answer?.(request) ?? { text: '' }
      return { status, headers: {}, body: Buffer.from(text) }
    },
  }
  async function signed(aws: AwsAuthConfig = {}, request: Partial<OutgoingRequest> = {}, caller = noCaller) {
    const outgoing: OutgoingRequest = {
      origin,
      path: '/',
      method: 'POST',
      headers: {},
      body: '{}',
      ...request,
    }
    await compileAuthorize({ aws }, context, { destination: aws })?.apply(outgoing, caller)
    return outgoing
  }
  return { sent, files, context, signed }
}

const textOf = ({ body }: Pick<OutgoingRequest, 'body'>) =>
  typeof body === 'string' ? body : Buffer.from(body as Uint8Array).toString()

const verified = (request: OutgoingRequest, secret = 'hush') =>
  verifySignature(
    {
      method: request.method,
      path: request.path,
      headers: { host: new URL(request.origin).host, ...request.headers },
      body: textOf(request),
    },
    () => secret,
  )

function sourceOf(...chunks: string[]): BodySource {
  return {
    start(sink) {
      for (const chunk of chunks) sink.write(Buffer.from(chunk))
      sink.end()
    },
    resume() {},
    cancel() {},
  }
}

describe('a signed request', () => {
  it('has the region of its host and the default service', async () => {
    const request = await signedWithKeys()
    expect(request.headers['authorization']).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/eu-west-1\/bedrock\/aws4_request, SignedHeaders=content-type;host;x-amz-date, /,
    )
    expect(verified(request)).toMatchObject({ kind: 'valid', accessKeyId: 'AKID' })
  })

  const signedWithKeys = (request: Partial<OutgoingRequest> = {}, more: AwsAuthConfig = {}) =>
    fixture().signed(
      { ...keys, ...more },
      { headers: { 'content-type': 'application/json' }, path: '/model/a%3Ab/converse?x=1', ...request },
    )

  it('has the configured region and service and the session token', async () => {
    const request = await signedWithKeys(
      { headers: { 'x-amz-security-token': 'of-client', 'x-amz-date': 'of-client' } },
      { region: 'us-west-2', serviceName: 'execute-api', sessionToken: 'session' },
    )
    expect(request.headers['x-amz-security-token']).toBe('session')
    expect(request.headers['authorization']).toContain('/us-west-2/execute-api/aws4_request')
    expect(verified(request)).toMatchObject({ kind: 'valid' })
  })

  it('reports its session token, which errors of AWS quote', () => {
    const authorize = compileAuthorize({ aws: { ...keys, sessionToken: 'session' } }, fixture().context)
    const request = { origin, path: '/', method: 'GET', headers: {} }
    authorize?.apply(request, noCaller)
    expect(authorize?.placed?.(request)).toEqual(['session'])
  })

  it('covers the query, a port and every header of AWS', async () => {
    const request = await signedWithKeys(
      {
        origin: 'http://127.0.0.1:4566',
        headers: { 'x-amzn-bedrock-trace': 'ENABLED', 'x-other': '1' },
        path: '/a//b?b=2&a=1&a=%2F',
      },
      { region: 'us-east-1' },
    )
    expect(request.headers['authorization']).toContain('SignedHeaders=host;x-amz-date;x-amzn-bedrock-trace,')
    expect(verified(request)).toMatchObject({ kind: 'valid' })
    expect(verified({ ...request, path: '/a//b?b=2&a=2&a=%2F' })).toMatchObject({ kind: 'invalid' })
    expect(verified({ ...request, body: '{"x":1}' })).toMatchObject({ kind: 'invalid' })
  })

  it('buffers a streamed body and signs it', async () => {
    const request = await signedWithKeys({
      body: sourceOf('{"a":', '1}'),
      headers: { 'content-length': '7' },
    })
    expect(textOf(request)).toBe('{"a":1}')
    expect(request.headers['content-length']).toBeUndefined()
    expect(verified(request)).toMatchObject({ kind: 'valid' })
  })

  it('is denied if a streamed body exceeds the limit', async () => {
    const large = Buffer.alloc(11 * 1024 * 1024).toString('latin1')
    await expect(signedWithKeys({ body: sourceOf(large) })).rejects.toMatchObject({
      code: 'request_too_large',
    })
  })

  it('streams to S3 with TLS without a signature of the body', async () => {
    const body = sourceOf('x')
    const request = await signedWithKeys({ body }, { serviceName: 's3' })
    expect(request.body).toBe(body)
    expect(request.headers['x-amz-content-sha256']).toBe('UNSIGNED-PAYLOAD')
  })

  it('is denied without a region, with the fix in the log', async () => {
    const failure = await fixture()
      .signed(keys, { origin: 'http://localhost' })
      .catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 'credential_unavailable' })
    expect(String((failure as GatewayError).cause)).toContain('AWS_REGION')
  })

  it('is denied for calls of gRPC services', () => {
    const authorize = compileAuthorize({ aws: keys }, fixture().context)
    expect(() => authorize?.apply({ headers: {}, path: '' }, noCaller)).toThrow(GatewayError)
  })
})

const temporary = (id: string) =>
  `<R><Credentials><AccessKeyId>${id}</AccessKeyId><SecretAccessKey>hush&amp;</SecretAccessKey>` +
  `<SessionToken>token</SessionToken><Expiration>1970-01-01T01:00:05Z</Expiration></Credentials></R>`

const json = (id: string) =>
  JSON.stringify({ AccessKeyId: id, SecretAccessKey: 'hush', Token: 't', Expiration: '1970-01-01T01:00:05Z' })

const keyOf = ({ headers }: OutgoingRequest) => /Credential=(\w+)/.exec(String(headers['authorization']))?.[1]

const formOf = (request: OutgoingRequest | undefined) =>
  Object.fromEntries(new URLSearchParams(request === undefined ? '' : textOf(request)))

describe('the identity of the environment', () => {
  it('is that of the variables first', async () => {
    const { signed, sent } = fixture({
      AWS_ACCESS_KEY_ID: 'ENV',
      AWS_SECRET_ACCESS_KEY: 'hush',
      AWS_SESSION_TOKEN: 's',
      AWS_WEB_IDENTITY_TOKEN_FILE: '/token',
      AWS_ROLE_ARN: 'arn:r',
    })
    const request = await signed()
    expect([keyOf(request), request.headers['x-amz-security-token'], sent.length]).toEqual(['ENV', 's', 0])
  })

  it('is that of the default profile', async () => {
    const { signed, files } = fixture()
    files['/srv/g/.aws/credentials'] =
      '# keys\n[default]\naws_access_key_id = FILE\naws_secret_access_key=hush ; comment\n'
    files['/srv/g/.aws/config'] =
      '[default]\nregion = us-west-1\ns3 =\n  max = 1\n[profile other]\nregion = x\n'
    const request = await signed({}, { origin: 'http://localhost' })
    expect(keyOf(request)).toBe('FILE')
    expect(request.headers['authorization']).toContain('/us-west-1/')
  })

  it('has the keys that another program writes to the profile', async () => {
    const { signed, files, context } = fixture()
    const keysFile = (id: string) => `[default]\naws_access_key_id = ${id}\naws_secret_access_key = hush\n`
    files['/srv/g/.aws/credentials'] = keysFile('OLD')
    expect(keyOf(await signed())).toBe('OLD')
    files['/srv/g/.aws/credentials'] = keysFile('NEW')
    context.clock.advance(300_000)
    expect(keyOf(await signed())).toBe('NEW')
  })

  it('is a role of the selected profile, signed by its source', async () => {
    const { signed, files, sent } = fixture({ AWS_PROFILE: 'app', AWS_REGION: 'eu-west-3' }, () => ({
      text: temporary('ROLE'),
    }))
    files['/srv/g/.aws/config'] =
      '[profile app]\nrole_arn = arn:aws:iam::123456789012:role/app\nsource_profile = base\nrole_session_name = me\n' +
      '[profile base]\naws_access_key_id = BASE\naws_secret_access_key = hush\n'
    expect(keyOf(await signed())).toBe('ROLE')
    expect(sent[0]).toMatchObject({ origin: 'https://sts.eu-west-3.amazonaws.com', method: 'POST' })
    expect(formOf(sent[0])).toMatchObject({ Action: 'AssumeRole', RoleSessionName: 'me' })
    expect(sent[0] && verified(sent[0])).toMatchObject({ kind: 'valid', accessKeyId: 'BASE' })
  })

  it.each([
    ['[profile app]\nlogin_session = x\n', 'login_session is not supported'],
    ['[profile app]\nrole_arn = r\n', 'requires source_profile'],
    ['[profile app]\nrole_arn = r\nsource_profile = app\n', 'refers to itself|no identity|$^'],
    ['', 'profile "app" is in neither'],
  ])('reports a profile that is not usable: %s', (text, message) => {
    const { context, files } = fixture({ AWS_PROFILE: 'app', AWS_EC2_METADATA_DISABLED: 'true' })
    files['/srv/g/.aws/config'] = text
    expect(() => compileAuthorize({ aws: {} }, context)).toThrow(new RegExp(message))
  })

  it('is a service account of Kubernetes, whose token is read for each request', async () => {
    const { signed, files, sent, context } = fixture(
      { AWS_WEB_IDENTITY_TOKEN_FILE: '/token', AWS_ROLE_ARN: 'arn:r', AWS_REGION: 'eu-west-1' },
      () => ({ text: temporary('IRSA') }),
    )
    files['/token'] = 'one\n'
    expect(keyOf(await signed())).toBe('IRSA')
    expect(keyOf(await signed())).toBe('IRSA')
    expect(sent).toHaveLength(1)
    expect(formOf(sent[0])).toMatchObject({
      Action: 'AssumeRoleWithWebIdentity',
      WebIdentityToken: 'one',
      RoleSessionName: 'tollgate',
    })
    expect(sent[0]?.headers['authorization']).toBeUndefined()
    files['/token'] = 'two'
    context.clock.advance(3_599_000)
    await signed()
    expect(formOf(sent[1])).toMatchObject({ WebIdentityToken: 'two' })
  })

  it('is that of a container, with its token', async () => {
    const { signed, files, sent } = fixture(
      {
        AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://169.254.170.23/v1/credentials',
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: '/pod',
      },
      () => ({ text: json('POD') }),
    )
    files['/pod'] = 'pod-token\n'
    expect(keyOf(await signed())).toBe('POD')
    expect(sent[0]).toMatchObject({
      origin: 'http://169.254.170.23',
      path: '/v1/credentials',
      headers: { authorization: 'pod-token' },
    })
  })

  it('does not send the token of a container to other hosts without TLS', () => {
    const { context } = fixture({ AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://evil.test/x' })
    expect(() => compileAuthorize({ aws: {} }, context)).toThrow('must be https')
  })

  it('is the role of the instance otherwise, by version 2 of the metadata service', async () => {
    const { signed, sent } = fixture({}, ({ path }) => {
      if (path === '/latest/api/token') return { text: 'imds-token' }
      return { text: path.endsWith('/') ? 'web-role\n' : json('EC2') }
    })
    expect(keyOf(await signed())).toBe('EC2')
    expect(sent.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'PUT /latest/api/token',
      'GET /latest/meta-data/iam/security-credentials/',
      'GET /latest/meta-data/iam/security-credentials/web-role',
    ])
    expect(sent[2]?.headers).toEqual({ 'x-aws-ec2-metadata-token': 'imds-token' })
  })

  it('shares one request between concurrent calls', async () => {
    const { signed, sent } = fixture({ AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/c' }, () => ({
      text: json('C'),
    }))
    await Promise.all([signed(), signed(), signed()])
    expect(sent).toHaveLength(1)
  })
})

describe('the identity of the machine', () => {
  it.each([
    [{}, true],
    [{ assumeRole: { roleArn: 'x' } }, true],
    [{ accessKeyId: '', secretAccessKey: '' }, true],
    [undefined, true],
    [keys, false],
  ])('is used by %j: %s', (config, expected) => {
    expect(awsIdentity.usesMachine(config)).toBe(expected)
  })

  it.each([
    ['bedrock-runtime.us-east-1.amazonaws.com', true],
    ['bedrock-runtime.cn-north-1.amazonaws.com.cn', true],
    ['x.execute-api.us-east-1.amazonaws.com', false],
    ['bedrock-runtime.us-east-1.amazonaws.com.evil.test', false],
  ])('is sent to %s: %s', (host, expected) => {
    expect(awsIdentity.isCloudHost(host)).toBe(expected)
  })
})

const role = 'arn:aws:iam::123456789012:role/gateway'

describe('assumeRole', () => {
  it('requests keys per session, and signs with them', async () => {
    const { signed, sent } = fixture({}, () => ({ text: temporary('ROLE') }))
    const aws: AwsAuthConfig = {
      ...keys,
      region: 'eu-west-1',
      assumeRole: {
        roleArn: role,
        sessionName: { expression: 'request.headers["x-user"]' },
        tags: [
          { key: 'team', value: 'search' },
          { key: 'app', expression: 'request.headers["x-app"]' },
        ],
      },
    }
    const as = (user: string) => callerOf(fixtureExchange({ headers: { 'x-user': user, 'x-app': 'chat' } }))
    for (const user of ['ada', 'ada', 'bob']) expect(keyOf(await signed(aws, {}, as(user)))).toBe('ROLE')
    expect(sent.map((request) => formOf(request)['RoleSessionName'])).toEqual(['ada', 'bob'])
    expect(formOf(sent[0])).toMatchObject({
      RoleArn: role,
      'Tags.member.1.Key': 'team',
      'Tags.member.1.Value': 'search',
      'Tags.member.2.Value': 'chat',
    })
    await expect(signed(aws, {}, as('not a name'))).rejects.toMatchObject({ code: 'credential_forbidden' })
    await expect(signed(aws)).rejects.toMatchObject({ code: 'credential_unavailable' })
  })

  it('reports no request that an error of the token service quotes', async () => {
    const { signed } = fixture({}, () => ({
      status: 403,
      text: '<Error><Code>SignatureDoesNotMatch</Code><Message>x-amz-security-token:of-source</Message></Error>',
    }))
    const source = { ...keys, sessionToken: 'of-source', region: 'r', assumeRole: { roleArn: role } }
    const { cause } = await signed(source).then(
      () => ({ cause: 'none' }),
      (error: GatewayError) => error,
    )
    expect(String(cause)).toContain('SignatureDoesNotMatch')
    expect(String(cause)).not.toContain('of-source')
  })

  it('limits concurrent requests for sessions', async () => {
    const { context } = fixture()
    const held = Promise.withResolvers<Reply>()
    let requests = 0
    const send = () => {
      requests += 1
      return held.promise
    }
    const assumeRole = { roleArn: role, sessionName: { expression: 'request.headers["x-user"]' } }
    const authorize = compileAuthorize({ aws: { ...keys, region: 'r', assumeRole } }, { ...context, send })
    const refusals: unknown[] = []
    for (let user = 0; user < 70; user += 1) {
      const { facts } = fixtureExchange({ headers: { 'x-user': `user-${user}` } })
      const request = { origin, path: '/', method: 'GET', headers: {} }
      const applying = authorize?.apply(request, { ...noCaller, facts })
      applying?.catch((error: unknown) => refusals.push(error))
    }
    await new Promise(setImmediate)
    expect([requests, refusals.length]).toEqual([64, 6])
    held.resolve({ status: 500, headers: {}, body: undefined })
  })

  it('reports the refusal of the token service with the fix, and no secret', async () => {
    const { signed } = fixture({}, () => ({
      status: 403,
      text: '<Error><Code>AccessDenied</Code><Message>not authorized</Message></Error>',
    }))
    const failure = await signed({ ...keys, region: 'r', assumeRole: { roleArn: role } }).catch(
      (error: unknown) => error,
    )
    expect(failure).toMatchObject({ code: 'credential_unavailable' })
    const { cause } = failure as GatewayError
    expect(String(cause)).toContain('AccessDenied: not authorized')
    expect(String(cause)).toContain('trust policy')
    expect(String(cause)).not.toContain('hush')
  })
})
