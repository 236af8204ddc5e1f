import type { StreamStatus } from '../../config/live/stream-status.ts'
import type { Config } from '../../config/schema.ts'
import { notFound, refusal } from '../change/change.ts'
import type { ResourceHost, Resources } from '../resources.ts'

/** Objects of an API that the configuration is translated from. */
export type ObjectView = {
  /** Reason in refusals of changes through the config resource API. */
  readonly readOnlyReason: string
  /** `<kind>/<namespace>/<name>` of the object of a part of a configuration, by its path. */
  objectOf(config: Config, path: readonly (string | number)[]): string | undefined
  /** State of the stream of the controller; absent without one. */
  status?(): StreamStatus
}

export type ObjectResourcesOptions = { readonly view: ObjectView; readonly host: ResourceHost }

const objectHistory = refusal(
  404,
  'the configuration comes from objects without a recorded history: use version control for their manifests',
)

/** Resources of a configuration that comes from objects: a view, without changes. */
export function createObjectResources({ view, host }: ObjectResourcesOptions): Resources {
  let current: Config = {}
  async function useFile(config: Config): Promise<void> {
    const prepared = await host.prepare(config)
    await prepared.commit()
    current = config
  }
  return {
    useFile,
    reapply: () => useFile(current),
    pending: () => undefined,
    // As in file mode: only records of a database are listed.
    list: () => ({ kind: 'listed', envelopes: [] }),
    find: (kind, id) => notFound(kind, id),
    change: () => Promise.resolve(refusal(403, view.readOnlyReason)),
    history: () => Promise.resolve(objectHistory),
    async idle() {
      await host.exclusive(() => Promise.resolve())
    },
    effective: () => ({
      config: current,
      file: current,
      objectOf: (path) => view.objectOf(current, path),
    }),
    status: () => ({ mode: 'objects', ...(view.status && { stream: view.status() }) }),
    close: () => Promise.resolve(),
  }
}
