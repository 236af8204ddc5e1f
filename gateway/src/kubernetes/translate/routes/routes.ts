import type { ObjectStatus } from '../status/object-status.ts'
import { createConnectionTranslator } from './connection-translator.ts'
import { type Contribution, createGatewayCollector } from './gateway-collector.ts'
import { invalidRouteStatuses } from './invalid-routes.ts'
import { createReferenceTable } from './reference-table.ts'
import { createRequestTranslator } from './request-translator.ts'
import type { RoutesInput, RoutesTranslation } from './routes-translation.ts'

/**
 * Creates the step that attaches routes to listeners and translates them. A route is translated again only
 * if it is another object, or if the plans of its Gateways, results of its references or its policies differ.
 */
export function createRouteTranslator(): (input: RoutesInput) => RoutesTranslation {
  const table = createReferenceTable()
  const translateRequests = createRequestTranslator(table)
  const translateConnections = createConnectionTranslator(table)
  const collect = createGatewayCollector()
  return (input) => {
    table.beginPass(input.references)
    const plans = new Map(input.plans.map((plan) => [plan.key, plan]))
    const invalid = invalidRouteStatuses(input.objects, plans).map((status) => contributionOf(status))
    return collect(input.plans, [
      ...translateRequests(input, plans),
      ...translateConnections(input, plans),
      ...invalid,
    ])
  }
}

function contributionOf(status: ObjectStatus): Contribution {
  return { parts: [], attached: [], status }
}
