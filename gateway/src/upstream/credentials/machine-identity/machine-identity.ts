import { awsIdentity } from '../aws/aws-identity.ts'
import { azureIdentity } from '../azure/azure-identity.ts'
import type { BackendAuthConfig } from '../config.ts'
import { copilotIdentity } from '../copilot/copilot-identity.ts'
import { googleIdentity } from '../google/google-identity.ts'
import type { CloudIdentity } from './cloud-identity.ts'

type Way = Exclude<keyof BackendAuthConfig, 'location' | 'credentials'>

/**
 * Identities of this machine by key of `backendAuth`. `none`: the configuration has or refers to its own
 * credential, or the client sends it.
 */
const identities: Readonly<Record<Way, CloudIdentity | 'none'>> = {
  key: 'none',
  passthrough: 'none',
  jwtSign: 'none',
  oauthTokenExchange: 'none',
  crossAppAccess: 'none',
  aws: awsIdentity,
  azure: azureIdentity,
  gcp: googleIdentity,
  copilot: copilotIdentity,
}

/** Name and identity of a way of authentication that uses an identity of this machine. */
export type UsedIdentity = { readonly name: string; readonly identity: CloudIdentity }

/** The identity of this machine that a value of `backendAuth` uses; undefined without one. May be invalid. */
export function machineIdentityOf(auth: object): UsedIdentity | undefined {
  for (const [name, config] of Object.entries(auth)) {
    if (config === undefined || !isWay(name)) continue
    const identity = identities[name]
    if (identity !== 'none' && identity.usesMachine(config)) return { name, identity }
  }
  return undefined
}

function isWay(name: string): name is Way {
  return Object.hasOwn(identities, name)
}
