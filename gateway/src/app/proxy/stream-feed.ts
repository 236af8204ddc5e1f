import { ConfigRejected } from '../../config/config-rejected.ts'
import { validationSteps } from '../../config/load/validate.ts'
import type { Config } from '../../config/schema.ts'
import type { Subscription } from '../../kubernetes/stream/client/subscription.ts'
import { runYielding, type YieldPoint } from '../../lib/scheduling/yielding.ts'
import type { ObjectView } from '../../resources/objects/objects.ts'
import type { ConfigFeed } from '../config-feed.ts'

export type StreamFeedOptions = {
  readonly subscription: Subscription
  /** Valid list items of earlier configurations, by identity. */
  readonly validated: WeakSet<object>
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
  return {
    origin: { kind: 'objects', view },
    async read(): Promise<Config> {
      const { config } = await subscription.latest()
      // The controller may be of another version, which permits other values.
      const issues = await runYielding(validationSteps(config, validated), yieldPoint)
      if (issues.length > 0) throw new ConfigRejected(issues)
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
