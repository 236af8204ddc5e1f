import { ConfigRejected, reasonsOf } from '../../config/config-rejected.ts'
import type { PreparedConfig } from '../../config/live/live.ts'
import { type ConfigTree, createValidatedParts, validationSteps } from '../../config/load/validate.ts'
import type { Config } from '../../config/schema.ts'
import type { Clock } from '../../lib/clock.ts'
import type { YieldPoint } from '../../lib/scheduling/yielding.ts'
import { runYielding } from '../../lib/scheduling/yielding.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ResourceHost } from '../resources.ts'
import type { ResourceStore } from '../stores/store.ts'
import { logShadowed } from './audit.ts'
import { type OverlayResult, overlay } from './overlay.ts'
import type { Expand } from './record.ts'
import type { RecordIndex } from './record-index.ts'

/** Dependencies of hybrid mode. */
export type HybridContext = {
  readonly store: ResourceStore
  readonly host: ResourceHost
  readonly expand: Expand
  readonly randomUuid: () => string
  readonly clock: Clock
  readonly log: Log
  /** Yields to traffic; shared by all work of this replica. */
  readonly yieldPoint: YieldPoint
}

/** State of a replica in hybrid mode. Changed only under the lock of reloads. */
export type HybridState = {
  /** Configuration of the file. Its ports are open, even if it is not active. */
  file: Config | undefined
  /** Records of the database, as last read. */
  index: RecordIndex | undefined
  /** The active configuration. */
  active: OverlayResult | undefined
  /** File and named records validated last, together; keys are validated one by one. */
  validated: { readonly file: Config; readonly named: RecordIndex['named'] } | undefined
  /** Reasons why the stored records are not active. */
  rejection: string | undefined
}

export function createHybridState(): HybridState {
  return { file: undefined, index: undefined, active: undefined, validated: undefined, rejection: undefined }
}

/** A prepared configuration with its sources. */
export type Candidate = {
  readonly overlaid: OverlayResult
  readonly file: Config
  readonly index: RecordIndex
  readonly prepared: PreparedConfig
}

/** Validates, prepares and activates configurations of a file and records. */
export type Activation = {
  /** Throws `ConfigRejected`, or an error of `ResourceHost.prepare`. */
  prepare(file: Config, index: RecordIndex): Promise<Candidate>
  /** Resolves when the candidate serves all traffic. */
  activate(candidate: Candidate): Promise<void>
  /** Opens the ports of the file without serving it: records that it depends on are missing. */
  prepareFileOnly(file: Config): Promise<void>
  /** Reports a rejection; the active configuration remains. */
  reject(error: unknown): void
}

/**
 * `onInactive` is called after a rejection without an active configuration: a reason such as a port in use
 * may be temporary.
 */
export function createActivation(
  state: HybridState,
  { host, log, yieldPoint }: HybridContext,
  onInactive: () => void,
): Activation {
  const validatedObjects = createValidatedParts()

  return {
    async prepare(file, index) {
      const overlaid = overlay(file, index, state.active?.config)
      if (overlaid.refusals.length > 0) throw new ConfigRejected(overlaid.refusals)
      await yieldPoint()
      const { validated } = state
      const isValidated =
        index.ordered.length === 0 || (validated?.file === file && validated.named === index.named)
      const steps = validationSteps(overlaid.keyless, validatedObjects)
      const issues = isValidated ? [] : await runYielding(steps, yieldPoint)
      if (issues.length > 0) throw new ConfigRejected(issues)
      for (const { item } of index.ordered) host.markApi(item)
      await yieldPoint()
      const prepared = await host.prepare(asConfig(overlaid.config))
      return { overlaid, file, index, prepared }
    },
    async activate({ overlaid, file, index, prepared }) {
      logShadowed(overlaid.shadowed, state.active?.shadowed, log)
      await prepared.commit()
      state.active = overlaid
      state.rejection = undefined
      state.file = file
      state.validated = { file, named: index.named }
    },
    async prepareFileOnly(file) {
      const prepared = await host.prepare(file)
      await prepared.commit()
      state.file = file
    },
    reject(error) {
      const reasons = reasonsOf(error)
      const isReported = state.rejection === reasons.join('\n')
      state.rejection = reasons.join('\n')
      host.report(state.rejection)
      if (state.active === undefined) onInactive()
      for (const reason of isReported ? [] : reasons) {
        log.error({ reason }, 'config resources rejected, the previous configuration keeps running')
      }
    },
  }
}

/** The guard: the tree was validated, virtual keys one by one and the rest as a whole. */
function asConfig(tree: ConfigTree): Config {
  return tree as Config
}
