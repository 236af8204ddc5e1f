import { isJsonObject } from '../../lib/json/json.ts'
import type { ApiObject } from '../client/client.ts'
import type { ListWatch } from '../client/watch/list-watch.ts'
import { createObjectStore } from '../client/watch/object-store.ts'
import { type DeployedKind, deployedKindNames, deployedKinds } from '../deployer/deployed-kinds.ts'
import { gatewayNameLabel } from '../deployer/names.ts'
import { apiVersionOf } from '../objects/kinds.ts'
import type { ObjectKey } from '../objects/meta.ts'
import { type WatchPlaceOptions, watchPlace } from './watching/watch-place.ts'

export type DeployedObjectsOptions = WatchPlaceOptions & {
  readonly namespaces: readonly string[] | undefined
  /** Called after a change or a deletion of an object of a Gateway. */
  changed(gateway: ObjectKey): void
}

/** Follows the objects that deployments create, so that changes by others are repaired. */
export function watchDeployed(options: DeployedObjectsOptions): { close(): void } {
  const watches = deployedKindNames.flatMap((kind) => watchKind(kind, options))
  return {
    close() {
      for (const watch of watches) watch.close()
    },
  }
}

function watchKind(kind: DeployedKind, options: DeployedObjectsOptions): ListWatch[] {
  const apiKind = deployedKinds[kind]
  const store = createObjectStore(
    { apiVersion: apiVersionOf(apiKind), kind },
    ({ before, after, isStatusOnly }) => {
      const object = after ?? before
      const owner = object === undefined || isStatusOnly ? undefined : ownerOf(object)
      if (owner !== undefined) options.changed(owner)
    },
  )
  return (options.namespaces ?? [undefined]).map((namespace) =>
    watchPlace(options, { kindName: kind, kind: apiKind, namespace, store, labelSelector: gatewayNameLabel }),
  )
}

/** Key of the Gateway that owns an object. */
function ownerOf({ metadata }: ApiObject): ObjectKey | undefined {
  const { ownerReferences, namespace } = metadata
  const owners = Array.isArray(ownerReferences) ? ownerReferences : []
  const owner = owners.find((reference) => isJsonObject(reference) && reference['kind'] === 'Gateway')
  return isJsonObject(owner) ? `${namespace}/${owner['name']}` : undefined
}
