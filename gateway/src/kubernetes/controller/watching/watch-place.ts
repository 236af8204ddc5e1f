import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../telemetry/log.ts'
import type { ControllerMeter, WatchFailure } from '../../../telemetry/metrics/controller.ts'
import type { ApiClient, ListOptions } from '../../client/client.ts'
import type { ApiError } from '../../client/requests/api-error.ts'
import { createListWatch, type ListWatch } from '../../client/watch/list-watch.ts'
import type { ObjectStore } from '../../client/watch/object-store.ts'
import type { ApiKind } from '../../objects/kinds.ts'

export type WatchPlaceOptions = {
  readonly client: Pick<ApiClient, 'list' | 'watch'>
  readonly clock: Clock
  readonly random: () => number
  readonly log: Log
  readonly meter: ControllerMeter
}

export type WatchedPlace = ListOptions & {
  readonly kindName: string
  readonly kind: ApiKind
  readonly store: ObjectStore
}

/** Follows one kind in one namespace or in all, with log and metrics. */
export function watchPlace(
  { client, clock, random, log, meter }: WatchPlaceOptions,
  { kindName, ...place }: WatchedPlace,
): ListWatch {
  const fields = { kind: kindName, ...(place.namespace !== undefined && { namespace: place.namespace }) }
  let isFailing = false
  return createListWatch({
    ...place,
    client,
    clock,
    random,
    observer: {
      listed({ objects, durationMs }) {
        const message = isFailing ? 'kubernetes watch recovered' : 'kubernetes objects listed'
        const listed = { ...fields, objects, durationMs: Math.round(durationMs) }
        if (isFailing) log.info(listed, message)
        else log.debug(listed, message)
        isFailing = false
      },
      failed(error, retryMs) {
        meter.watchFailed(kindName, watchFailureOf(error))
        const failed = {
          ...fields,
          status: error.status,
          error: error.message,
          retryMs: Math.round(retryMs),
        }
        // Once for each outage: retries of all kinds would fill the log.
        if (isFailing) log.debug(failed, 'kubernetes watch failed')
        else log.warn(failed, 'kubernetes watch failed')
        isFailing = true
      },
      expired() {
        meter.watchFailed(kindName, 'expired')
      },
    },
  })
}

/** Label of a failure in metrics. */
function watchFailureOf({ status }: ApiError): WatchFailure {
  switch (status) {
    case 0:
      return 'connection'
    case 404:
      return 'not_found'
    case 401:
    case 403:
      return 'forbidden'
    case 429:
      return 'throttled'
    default:
      return 'other'
  }
}
