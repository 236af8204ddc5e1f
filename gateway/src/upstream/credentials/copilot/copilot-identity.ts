import { type CloudIdentity, hostsBelow } from '../machine-identity/cloud-identity.ts'

/** The token always belongs to a login of this machine or to the environment. */
export const copilotIdentity: CloudIdentity = {
  usesMachine: () => true,
  // api.githubcopilot.com, and api.business.githubcopilot.com with its siblings.
  isCloudHost: hostsBelow(['githubcopilot.com']),
}
