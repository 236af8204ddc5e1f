import { type CloudIdentity, hostsBelow } from '../machine-identity/cloud-identity.ts'

/** Identities of `backendAuth.azure` without an own secret, and hosts of Azure's AI services by cloud. */
export const azureIdentity: CloudIdentity = {
  usesMachine: (config) => !hasSecret(config),
  isCloudHost: hostsBelow([
    ...['openai.azure.com', 'services.ai.azure.com', 'cognitiveservices.azure.com'],
    ...['openai.azure.us', 'services.ai.azure.us', 'cognitiveservices.azure.us'],
    ...['openai.azure.cn', 'services.ai.azure.cn', 'cognitiveservices.azure.cn'],
  ]),
}

function hasSecret(config: unknown): boolean {
  const secret = memberOf(memberOf(config, 'explicitConfig'), 'clientSecret')
  return typeof secret === 'object' && secret !== null
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.entries(value).find(([key]) => key === name)?.[1]
}
