import type { CloudIdentity } from '../machine-identity/cloud-identity.ts'

/** Identities of `backendAuth.aws` without keys of their own, and hosts of Amazon Bedrock. */
export const awsIdentity: CloudIdentity = {
  usesMachine: (config) => !hasKeys(config),
  isCloudHost: (host) =>
    /^bedrock-(?:runtime|agentcore)(?:-fips)?\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?$/.test(host),
}

function hasKeys(config: unknown): boolean {
  if (typeof config !== 'object' || config === null) return false
  if (!('accessKeyId' in config && 'secretAccessKey' in config)) return false
  return [config.accessKeyId, config.secretAccessKey].every((key) => typeof key === 'string' && key !== '')
}
