import { readFileSync } from 'node:fs'
import type { ApiAccess } from '../../kubernetes/client/access/access.ts'
import { AccessError } from '../../kubernetes/client/access/access.ts'
import { inClusterAccess, isInCluster } from '../../kubernetes/client/access/in-cluster.ts'
import { readKubeconfig } from '../../kubernetes/client/access/kubeconfig.ts'
import type { Clock } from '../../lib/clock.ts'

const readText = (path: string) => readFileSync(path, 'utf8')

/**
 * Access to the API server: the kubeconfig file if there is one, else the service account of the Pod. Throws
 * `AccessError`.
 */
export function openApiAccess(
  kubeconfig: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  clock: Clock,
): ApiAccess {
  if (kubeconfig !== undefined) return readKubeconfig(kubeconfig, readText, clock)
  if (isInCluster(env)) return inClusterAccess(env, readText, clock)
  throw new AccessError('no API server: set --kubeconfig (KUBECONFIG), or run in a Pod')
}
