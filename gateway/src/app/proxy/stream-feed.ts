import { ConfigRejected } from '../../config/config-rejected.ts'
import { changesEndpointsOnly } from '../../config/live/endpoint-changes.ts'
import { type ValidatedParts, validatePart, validationSteps } from '../../config/load/validate.ts'
import type { Config } from '../../config/schema.ts'
import type { Subscription } from '../../kubernetes/stream/client/subscription.ts'
import { runYielding, type YieldPoint } from '../../lib/scheduling/yielding.ts'
import type { ObjectView } from '../../resources/objects/objects.ts'
import { formatPath } from '../../schema/path.ts'
import type { ConfigFeed } from '../config-feed.ts'

export type StreamFeedOptions = {
  readonly subscription: Subscription
  /** Valid parts of earlier configurations. */
  readonly validated: ValidatedParts
  readonly view: ObjectView
  readonly yieldPoint: YieldPoint
}

/** The configuration stream of a controller. The subscription outlives the feed. */
export function createStreamFeed({
  subscription,
  validated,
  view,
  yieldPoint,
}: StreamFeedOptions): ConfigFeed {
  let valid: Config | undefined

  /** The controller may be of another version, which permits other values. */
  async function validate(config: Config): Promise<void> {
    const issues =
      valid !== undefined && changesEndpointsOnly(valid, config)
        ? endpointIssues(valid, config)
        : await runYielding(validationSteps(config, validated), yieldPoint)
    if (issues.length > 0) throw new ConfigRejected(issues)
    valid = config
  }

  return {
    origin: { kind: 'objects', from: 'cluster', view },
    async read() {
      const { config } = await subscription.latest()
      if (config !== valid) await validate(config)
      return config
    },
    watch({ changed }) {
      subscription.watch(changed)
    },
    settled(outcome) {
      subscription.settle(
        outcome.kind === 'active' ? { kind: 'accepted' } : { kind: 'refused', errors: outcome.reasons },
      )
    },
    close() {},
  }
}

/** Issues of backends whose endpoints differ: Services change often, and 10,000 routes do not. */
function endpointIssues(before: Config, after: Config): string[] {
  return (after.backends ?? []).flatMap((backend, index) => {
    if (backend === before.backends?.[index]) return []
    const issues = validatePart({ kind: 'backend', value: { ...backend } }, after)
    return issues.map(({ path, message }) => `${formatPath(['backends', index, ...path])}: ${message}`)
  })
}
