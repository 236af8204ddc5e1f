import { isIPv6 } from 'node:net'
import type { Clock } from '../../../lib/clock.ts'
import { messageOf } from '../../../lib/thrown.ts'
import { AccessError, type ApiAccess } from './access.ts'
import { createTokenFile, type ReadText } from './token-file.ts'

const folder = '/var/run/secrets/kubernetes.io/serviceaccount'

type Environment = Readonly<Record<string, string | undefined>>

/** Whether the environment is that of a Pod with an API server. */
export function isInCluster(env: Environment): boolean {
  return env['KUBERNETES_SERVICE_HOST'] !== undefined
}

/**
 * Access with the service account of the Pod: address from the environment, token and authority from the
 * projected volume. Throws `AccessError` if a file is absent.
 */
export function inClusterAccess(env: Environment, readText: ReadText, clock: Clock): ApiAccess {
  const host = env['KUBERNETES_SERVICE_HOST'] ?? ''
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443'
  const token = createTokenFile(`${folder}/token`, readText, clock)
  try {
    token.read()
    return {
      server: new URL(`https://${isIPv6(host) ? `[${host}]` : host}:${port}`),
      authority: readText(`${folder}/ca.crt`),
      serverName: undefined,
      certificate: undefined,
      token,
      namespace: readText(`${folder}/namespace`).trim(),
    }
  } catch (error) {
    throw new AccessError(
      `service account is not readable: ${messageOf(error)}; set automountServiceAccountToken`,
      { cause: error },
    )
  }
}
