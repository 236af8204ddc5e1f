import { type CloudIdentity, hostsBelow } from '../machine-identity/cloud-identity.ts'
import { type GoogleCredential, parseCredential } from './credential-file.ts'

/**
 * Identities of `backendAuth.gcp` without a key or login of their own. Workload identity federation counts as
 * one, because an inline credential may name any file as its source.
 */
export const googleIdentity: CloudIdentity = {
  usesMachine: (config) => !hasKey(config),
  isCloudHost: hostsBelow(['googleapis.com']),
}

function hasKey(config: unknown): boolean {
  if (typeof config !== 'object' || config === null || !('credential' in config)) return false
  const { credential } = config
  if (typeof credential === 'object' && credential !== null) return 'file' in credential
  return typeof credential === 'string' && kindOf(credential) !== 'external_account'
}

function kindOf(credential: string): GoogleCredential['kind'] {
  try {
    return parseCredential(credential).kind
  } catch {
    // Invalid, or completed later.
    return 'external_account'
  }
}
