import type { BackendAuthConfig } from '../../../upstream/credentials/config.ts'

/**
 * Credentials of guards without `policies.backendAuth`, by kind: identities of the machine, which the config
 * API must not use.
 */
export const ambientAuth = {
  azureContentSafety: { azure: { implicit: {} } },
  googleModelArmor: { gcp: {} },
  bedrockGuardrails: { aws: {} },
} satisfies Readonly<Record<string, BackendAuthConfig>>
