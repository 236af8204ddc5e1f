import type { Path } from '../../schema/path.ts'
import { alternativesOf, childShapes, type Shape } from '../../schema/shape.ts'
import { agentgatewayObjects } from './agentgateway-keys.ts'

/** Keys of agentgateway's object, each with the names of the objects below it. */
type Keys = ReadonlyMap<string, readonly string[]>

/** Settings of agentgateway's own control plane. */
const controlPlaneKeys = [
  ...['caAddress', 'caAuthToken', 'clusterId', 'gateway', 'hbone', 'localXdsPath', 'namespace', 'network'],
  ...['serviceAccount', 'skipValidateTrustDomain', 'trustDomain', 'additionalTrustDomains', 'xdsAddress'],
  'xdsAuthToken',
]

const awsAlternative = 'use host, such as bedrock-agentcore.us-east-1.amazonaws.com:443, with backendAuth.aws'
const serviceAlternative = 'name a backend with policies by backend'
const tokenEndpointAlternative = 'use host, path and policies of the token endpoint'

/** The nearest supported setting for `object.key` of agentgateway, or for a key of any object. */
const alternatives: ReadonlyMap<string, string> = new Map([
  ...controlPlaneKeys.map((key): [string, string] => [
    `Config.${key}`,
    'it belongs to the control plane of agentgateway; on Kubernetes use tollgate controller',
  ]),
  ['Config.dns', 'addresses of both families are used as the resolver of the system returns them'],
  ['Config.enableIpv6', 'use bindAddress: 0.0.0.0 to listen on IPv4 only'],
  ['Config.spiffe', 'use certificate files, which are watched'],
  ['SpiffeConfig.endpoint', 'use certificate files, which are watched'],
  ['spiffe', 'use cert, key and root with files, which are watched'],
  ['developerImplicit', 'use implicit or explicitConfig'],
  ['Root.policies', 'set policies on gateways, routes, backends, llm, mcp or ui'],
  ['Root.services', 'use backends with endpoints'],
  ['Root.workloads', 'use backends with endpoints'],
  ['service', 'use host, or a backend with endpoints'],
  ['internal', 'use a backend with endpoints'],
  ['RouteBackend.aws', awsAlternative],
  ['FullLocalBackend.aws', awsAlternative],
  ['RouteBackend.invalid', 'use directResponse'],
  ['inferenceRouting', 'use a backend with endpoints and health, or sessionAffinity'],
  ['reference', 'only models refer to a provider: set the name of a provider'],
  ['RemoteRateLimit.policies', serviceAlternative],
  ['ConditionalPolicyRemoteRateLimit.policies', serviceAlternative],
  ['Config.backend', 'set tcp, http and health in the policies of backends'],
  ['OAuthTokenExchangeAuth.backend', tokenEndpointAlternative],
  ['CrossAppAccessEndpoint.backend', tokenEndpointAlternative],
  ['LoggingPolicy.database', 'use config.logging.database'],
  ['FrontendPolicies.logging', 'use accessLog'],
  ['FrontendPolicies.connect', 'use tunnelProtocol: connect of gateways'],
  ['FrontendPolicies.networkExtAuthz', 'use networkAuthorization'],
  ['FrontendHTTP.http1HeaderCase', 'header names of responses are in lower case'],
  ['SimpleLocalBackendSerde.backend', 'use host'],
  ['OpenAIProvider.moderation', 'use openAIModeration in promptGuard or guardrails'],
  ['Policy.promptGuard', 'set policies.ai.promptGuard of the route or its backend'],
  ['namespace', 'use name'],
  ['ruleName', 'use name'],
  [
    'AuthorizationLocation.expression',
    'credentials for backends have a header, queryParameter or cookie as location',
  ],
])

/** Objects of the configuration that have policies, with their names in messages. */
const policyPlaces: readonly (readonly [name: string, path: Path])[] = [
  ['gateways', ['gateways', '*']],
  ['routes', ['routes', 0, 'policies']],
  ['backends of routes', ['routes', 0, 'backends', 0, 'policies']],
  ['named backends', ['backends', 0, 'policies']],
  ['TCP routes', ['tcpRoutes', 0, 'policies']],
  ['llm', ['llm', 'policies']],
  ['mcp', ['mcp', 'policies']],
  ['MCP targets', ['mcp', 'targets', 0, 'policies']],
  ['ui', ['ui', 'policies']],
]

/**
 * Message for an unknown key at `path` that another place of the configuration (`root`) has, or that
 * agentgateway has; undefined for any other key.
 */
export function unsupportedKeyMessage(path: Path, root: Shape): string | undefined {
  const key = String(path.at(-1))
  const validPlaces = isPolicy(path) ? placesWith(key, root) : []
  if (validPlaces.length > 0) return `${key} is only valid on ${enumerated(validPlaces)}`
  const parents = objectsAt(path.slice(0, -1)).filter((name) => keysOf(name)?.has(key) === true)
  if (path.length === 0 || parents.length === 0) return undefined
  const specific = parents
    .map((name) => alternatives.get(`${name}.${key}`))
    .find((text) => text !== undefined)
  const alternative = specific ?? alternatives.get(key)
  return `agentgateway's ${key} is not supported${alternative === undefined ? '' : `: ${alternative}`}`
}

/** Whether the key at a path is a policy: a key of `policies`, or of a gateway or listener. */
function isPolicy(path: Path): boolean {
  const [first] = path
  if (path.at(-2) === 'policies') return true
  return first === 'gateways' && (path.length === 3 || (path.length === 5 && path[2] === 'listeners'))
}

/** Names of the places whose policies include `key`. */
function placesWith(key: string, root: Shape): string[] {
  return policyPlaces.flatMap(([name, path]) => {
    const shapes = path.reduce<readonly Shape[]>(childShapes, alternativesOf(root))
    return shapes.some((shape) => shape.kind === 'object' && shape.fields.has(key)) ? [name] : []
  })
}

function enumerated(names: readonly string[]): string {
  const last = names.at(-1) ?? ''
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} and ${last}`
}

/** Names of agentgateway's objects at a path. Items of lists have the path of the list. */
function objectsAt(path: Path): readonly string[] {
  return path.reduce<readonly string[]>(
    (names, step) => {
      if (typeof step === 'number') return names
      return names.flatMap((name) => keysOf(name)?.get(step) ?? keysOf(name)?.get('*') ?? [])
    },
    ['Root'],
  )
}

function keysOf(name: string): Keys | undefined {
  if (objects.size === 0) readObjects()
  return objects.get(name)
}

/** Filled on first use: most configurations have no unknown key. */
const objects = new Map<string, Keys>()

function readObjects(): void {
  for (const [, name = '', text = ''] of agentgatewayObjects.matchAll(/^(\w+)=(.*(?:\n .*)*)/gm)) {
    const keys = text
      .trim()
      .split(/\s+/)
      .map((item): [string, string[]] => {
        const [key = '', below] = item.split(':')
        return [key, below === undefined ? [] : below.split('|')]
      })
    objects.set(name, new Map(keys))
  }
}
