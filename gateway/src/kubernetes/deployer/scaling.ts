import type { JsonObject, JsonValue } from '../../lib/json/json.ts'
import type { GatewayParametersSpec } from '../own-kinds/gateway-parameters.ts'

/** `spec` of the HorizontalPodAutoscaler, if the parameters contain one. */
export function autoscalerSpec(
  { horizontalPodAutoscaler }: GatewayParametersSpec,
  name: string,
): JsonObject | undefined {
  if (horizontalPodAutoscaler === undefined) return undefined
  const {
    minReplicas = 1,
    maxReplicas,
    targetCPUUtilizationPercentage = 80,
    metrics,
    behavior,
  } = horizontalPodAutoscaler
  const target = { type: 'Utilization', averageUtilization: targetCPUUtilizationPercentage }
  return {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name },
    minReplicas,
    maxReplicas,
    metrics: (metrics as JsonValue[] | undefined) ?? [
      { type: 'Resource', resource: { name: 'cpu', target } },
    ],
    ...(behavior === undefined ? {} : { behavior: behavior as JsonObject }),
  }
}

/** `spec` of the PodDisruptionBudget, if the parameters contain one. */
export function budgetSpec(
  { podDisruptionBudget }: GatewayParametersSpec,
  selector: Record<string, string>,
): JsonObject | undefined {
  if (podDisruptionBudget === undefined) return undefined
  const { minAvailable, maxUnavailable } = podDisruptionBudget
  return {
    selector: { matchLabels: selector },
    ...(minAvailable === undefined ? {} : { minAvailable }),
    ...(maxUnavailable === undefined ? {} : { maxUnavailable }),
  }
}
