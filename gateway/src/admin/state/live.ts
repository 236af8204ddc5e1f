import { type Json, type OpenApiPart, responses } from '../../resources/api/openapi-part.ts'
import type { PlaneObservation } from '../../telemetry/live/observation.ts'
import type { AdminEndpoint } from '../api.ts'
import { createLiveHistory, sampleMs } from './live-history.ts'

const path = '/api/state/live'

export type LiveOptions = {
  observe(): Promise<readonly (PlaneObservation | undefined)[]>
  /** Milliseconds since the epoch. */
  now(): number
}

/** Figures of the last 15 minutes, sampled from the start on. */
export type LiveFeed = { readonly endpoint: AdminEndpoint; close(): void }

/**
 * Samples the totals of the data planes every few seconds: about 100 numbers of each, whatever the number of
 * readers. Requests of the console cost traffic nothing.
 */
export function createLiveFeed({ observe, now }: LiveOptions): LiveFeed {
  const history = createLiveHistory()
  let isSampling = false

  async function sample(): Promise<void> {
    if (isSampling) return
    isSampling = true
    try {
      history.add(now(), await observe())
    } finally {
      isSampling = false
    }
  }

  const timer = setInterval(() => void sample().catch(() => undefined), sampleMs)
  timer.unref()
  void sample().catch(() => undefined)
  const respond = async () => ({ kind: 'json' as const, value: history.figures() })
  return {
    endpoint: { path, methods: { GET: { respond } } },
    close: () => clearInterval(timer),
  }
}

const number: Json = { type: 'number' }
const milliseconds: Json = { type: 'number', description: 'Milliseconds; absent without requests.' }

export const liveOpenApi: OpenApiPart = {
  paths: {
    [path]: {
      get: {
        summary: 'Figures of the last 15 minutes in steps of a few seconds, and those of now.',
        responses: responses({
          type: 'object',
          properties: {
            bucketSeconds: number,
            points: {
              type: 'array',
              items: {
                type: 'object',
                properties: {
                  time: { type: 'integer', description: 'End of the step, milliseconds since the epoch.' },
                  requests: { type: 'integer', description: 'Completed requests, without the console.' },
                  errors: { type: 'integer', description: 'Responses with status 5xx.' },
                  refused: { type: 'integer', description: 'Responses with status 4xx.' },
                  ...{ p50Ms: milliseconds, p99Ms: milliseconds },
                  ...{ inputTokens: number, outputTokens: number, costUsd: number },
                },
              },
            },
            now: {
              type: 'object',
              properties: {
                requestsPerSecond: number,
                errorRate: { type: 'number', minimum: 0, maximum: 1 },
                ...{ p50Ms: milliseconds, p99Ms: milliseconds },
                ...{ tokensPerMinute: number, costUsdPerHour: number, activeRequests: number },
              },
            },
          },
        }),
      },
    },
  },
}
