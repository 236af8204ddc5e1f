import type { CompileContext } from '../../../pipeline/compile-context.ts'
import { compileConnection } from '../../connection.ts'
import { createTokenFetch, type TokenFetch, unavailable } from '../cloud/fetch-token.ts'
import type { TimedToken } from '../token-cache.ts'
import { type IdentityOptions, type RequestKeys, timedKeys } from './keys.ts'
import type { AwsCredentials } from './sigv4.ts'

const timeoutMs = 5_000
const instanceOrigin = 'http://169.254.169.254'
const containerOrigin = 'http://169.254.170.2'
/** Hosts of container credentials without TLS: ECS, EKS and the machine itself. */
const plainHosts: ReadonlySet<string> = new Set([
  ...['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]'],
  ...['127.0.0.1', '[::1]', 'localhost'],
])
const rolesPath = '/latest/meta-data/iam/security-credentials/'

type Get = (origin: string, path: string, options?: GetOptions) => Promise<TokenFetch>

type GetOptions = { method?: string; headers?: Record<string, string> }

/**
 * Compiles the role of a container (ECS, EKS Pod Identity):
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html. Throws for an address
 * that would send its token to other hosts.
 */
export function compileContainer(options: IdentityOptions): RequestKeys {
  const { environment, readFileNow, clock } = options.context
  const { origin, path } = containerAddress(environment)
  const get = createGet(options)
  const tokenFile = environment['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE']
  const readToken = () => {
    if (!tokenFile) return environment['AWS_CONTAINER_AUTHORIZATION_TOKEN'] || undefined
    try {
      return readFileNow(tokenFile).trim()
    } catch (cause) {
      throw unavailable('AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE is not readable', cause)
    }
  }
  return async () => {
    const token = readToken()
    const headers = token === undefined ? {} : { authorization: token }
    const reply = await get(origin, path, { headers })
    return keysIn(reply, 'container credentials', clock)
  }
}

function containerAddress(environment: CompileContext['environment']): { origin: string; path: string } {
  const relative = environment['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI']
  if (relative) return { origin: containerOrigin, path: relative }
  const address = URL.parse(environment['AWS_CONTAINER_CREDENTIALS_FULL_URI'] ?? '')
  if (address === null) throw new Error('aws: AWS_CONTAINER_CREDENTIALS_FULL_URI is not an address')
  if (address.protocol !== 'https:' && !plainHosts.has(address.hostname))
    throw new Error(
      'aws: AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or a host of ECS, EKS or loopback',
    )
  return { origin: address.origin, path: address.pathname + address.search }
}

/**
 * Compiles the role of an EC2 instance, by version 2 of its metadata service:
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
 */
export function compileInstance(options: IdentityOptions): RequestKeys {
  const { environment, clock } = options.context
  const origin = URL.parse(environment['AWS_EC2_METADATA_SERVICE_ENDPOINT'] ?? '')?.origin ?? instanceOrigin
  const get = createGet(options)
  return async () => {
    const session = await get(origin, '/latest/api/token', {
      method: 'PUT',
      headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' },
    })
    const token = session.text.trim()
    if (session.status !== 200 || !/^[\x21-\x7e]+$/.test(token))
      throw unavailable(`EC2 instance metadata: no session token: status ${session.status}`)
    const headers = { 'x-aws-ec2-metadata-token': token }
    const roles = await get(origin, rolesPath, { headers })
    const [role = ''] = roles.text.trim().split('\n')
    if (roles.status !== 200 || !/^[\w+=,.@-]+$/.test(role))
      throw unavailable('EC2 instance metadata: the instance has no role: attach an instance profile')
    return keysIn(await get(origin, rolesPath + role, { headers }), 'EC2 instance metadata', clock)
  }
}

function createGet({ node, context }: IdentityOptions): Get {
  const connection = compileConnection({}, context.egress.of(node), context)
  const fetchToken = createTokenFetch(context.send, timeoutMs)
  return (origin, path, { method = 'GET', headers = {} } = {}) =>
    fetchToken({ origin, path, method, headers, body: undefined, connection })
}

/** Both services have the same response. */
function keysIn(
  { status, body }: TokenFetch,
  service: string,
  { now }: CompileContext['clock'],
): TimedToken<AwsCredentials> {
  const { AccessKeyId: id, SecretAccessKey: secret, Token: sessionToken, Expiration: end } = body
  if (status !== 200) throw unavailable(`${service}: status ${status}`)
  return timedKeys({ id, secret, sessionToken, end }, { service, now })
}
