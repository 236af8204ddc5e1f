import { api } from '../client.ts'

/** A request that a client could send. */
export type ExplainedRequest = {
  readonly gateway?: string | undefined
  readonly method: string
  readonly host: string
  /** With or without a query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

/** A route that does not receive the request. */
export type OtherRoute = {
  readonly route: string
  readonly hostname: string
  readonly match: string
  readonly reason: string
}

export type RouteExplanation = {
  readonly listener: {
    readonly gateway: string
    readonly name: string
    readonly port: number
    readonly protocol: string
    readonly tls: boolean
  }
  /** Normalised path. */
  readonly path: string
  /** Absent if no route matches. */
  readonly route?: { readonly name: string; readonly match: string; readonly hostname: string }
  readonly policies: readonly string[]
  readonly backend?: {
    readonly kind: string
    readonly targets: readonly string[]
    readonly settings: readonly string[]
  }
  readonly others: readonly OtherRoute[]
}

export function explainRoute(request: ExplainedRequest, signal?: AbortSignal): Promise<RouteExplanation> {
  return api<RouteExplanation>('/api/routes/explain', { method: 'POST', body: request, signal })
}
