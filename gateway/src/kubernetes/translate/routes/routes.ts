import { createConnectionTranslator } from './connection-translator.ts'
import { createGatewayCollector } from './gateway-collector.ts'
import { invalidRouteStatuses } from './invalid-routes.ts'
import { createRequestTranslator } from './request-translator.ts'
import type { RoutesInput, RoutesTranslation } from './routes-translation.ts'

/**
 * Creates the step that attaches routes to listeners and translates them. It caches the results of a call by
 * the identity of routes and by the equality of all else they depend on.
 */
export function createRouteTranslator(): (input: RoutesInput) => RoutesTranslation {
  const translateRequests = createRequestTranslator()
  const translateConnections = createConnectionTranslator()
  const collect = createGatewayCollector()
  return (input) => {
    const plans = new Map(input.plans.map((plan) => [plan.key, plan]))
    return collect(input.plans, (collection) => {
      translateRequests(input, plans, collection)
      translateConnections(input, plans, collection)
      for (const status of invalidRouteStatuses(input.objects, plans)) collection.addStatus(status)
    })
  }
}
