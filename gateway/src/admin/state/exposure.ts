import { type ListenerAddress, listenerAddresses } from '../../config/listener-addresses.ts'
import type { Config } from '../../config/schema.ts'
import { isLoopbackHost, parseHostPort } from '../../lib/address/host-port.ts'
import type { Problem } from './problem.ts'

type Policies = Readonly<Record<string, unknown>> | undefined

/** Policies that refuse clients without credentials, unless their mode admits them. */
const authenticating = ['apiKey', 'jwtAuth', 'basicAuth', 'oidc', 'mcpAuthentication', 'extAuthz']

const sections = {
  llm: { name: 'LLM', code: 'llm_without_login', link: '/llm/policies' },
  mcp: { name: 'MCP', code: 'mcp_without_login', link: '/mcp/policies' },
} as const

/** Addresses that clients reach from other machines without credentials. */
export function exposureProblems(config: Config): Problem[] {
  const problems: Problem[] = []
  const listeners = listenerAddresses(config).filter(({ address }) => !isLoopbackHost(address))
  for (const section of ['llm', 'mcp'] as const) {
    if (requiresCredentials(config[section]?.policies)) continue
    const open = listeners.filter(
      (listener) => listener.serves.includes(section) && !isProtected(listener, config),
    )
    if (open.length === 0) continue
    const { name, code, link } = sections[section]
    const ports = [...new Set(open.map(({ port }) => port))].join(', ')
    problems.push({
      code,
      severity: 'warning',
      title: `${name} without login`,
      detail: `Every client that reaches port ${ports} can use ${name}. Require keys or tokens in ${section}.policies, or set config.bindAddress to 127.0.0.1.`,
      link,
      doc: section === 'llm' ? 'docs/virtual-keys.md' : 'docs/mcp-authentication.md',
    })
  }
  return [...problems, ...adminProblems(config)]
}

function adminProblems({ config = {} }: Config): Problem[] {
  const host = parseHostPort(config.adminAddr ?? '')?.host
  if (host === undefined || isLoopbackHost(host)) return []
  return [
    {
      code: 'admin_exposed',
      severity: 'error',
      title: 'Admin address without login',
      detail: `config.adminAddr is ${config.adminAddr}, reachable from other machines without login. Set it to 127.0.0.1, and serve the console with login in \`ui\`.`,
      link: '/settings',
      doc: 'docs/operations.md',
    },
  ]
}

function isProtected({ gateway, name }: ListenerAddress, { gateways = {} }: Config): boolean {
  const own = Object.hasOwn(gateways, gateway) ? gateways[gateway] : undefined
  if (own === undefined) return false
  const listener = own.listeners?.find((one, index) => `${gateway}/${one.name ?? index}` === name)
  return requiresCredentials(own as Policies) || requiresCredentials(listener as Policies)
}

function requiresCredentials(policies: object | undefined): boolean {
  const all = policies as Policies
  if (all === undefined) return false
  if (all['authorization'] !== undefined) return true
  return authenticating.some((name) => isStrict(all[name]))
}

function isStrict(policy: unknown): boolean {
  if (Array.isArray(policy)) return policy.some(isStrict)
  if (typeof policy !== 'object' || policy === null) return false
  const mode: unknown = Reflect.get(policy, 'mode')
  return mode === undefined || mode === 'strict'
}
