import { type ReactNode, useMemo } from 'react'
import { Link } from 'wouter'
import type { LogEntry } from '../../../api/ledger/log-entry.ts'
import { Card } from '../../../components/layout/card.tsx'
import { formatMoney } from '../../../format/money.ts'
import { formatNumber } from '../../../format/number.ts'
import { formatDateTime, formatDuration } from '../../../format/time.ts'
import { requestsAddress } from '../filters/url-filters.ts'

type FactList = readonly (readonly [name: string, value: ReactNode])[]

/** The columns of a request. Values link to the requests that share them. */
export function RequestFacts({ request }: { request: LogEntry }) {
  const sections = useMemo(() => sectionsOf(request), [request])
  return (
    <Card title="Facts" className="self-start">
      <div className="grid grid-cols-1 gap-x-8 gap-y-5 md:grid-cols-2 xl:grid-cols-1">
        {sections.map(([title, facts]) => (
          <section key={title} aria-label={title}>
            <h3 className="mb-1.5 text-xs text-ink-faint">{title}</h3>
            <dl className="text-sm">
              {facts
                .filter(([, value]) => value !== null && value !== undefined && value !== '')
                .map(([name, value]) => (
                  <div key={name} className="flex min-h-6 justify-between gap-4 leading-6">
                    <dt className="shrink-0 text-ink-soft">{name}</dt>
                    <dd className="min-w-0 text-right break-words tabular">{value}</dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
      </div>
    </Card>
  )
}

function sectionsOf(request: LogEntry): readonly (readonly [title: string, facts: FactList])[] {
  const { genAi, mcp, usage, cost } = request
  const all: readonly (readonly [string, FactList])[] = [
    [
      'Caller',
      [
        ['Key', link('keyId', request.keyId, request.keyName ?? request.keyId)],
        ['User', link('user', request.user)],
        ['Group', link('group', request.group)],
        ['Client', link('client', request.client)],
        ['User agent', request.userAgent],
      ],
    ],
    [
      'Route',
      [
        ['Request', `${request.method} ${request.path}`],
        ['Listener', request.listener],
        ['Route', link('route', request.route)],
        ['Trace', link('traceId', request.traceId)],
      ],
    ],
    mcp === null
      ? [
          'LLM',
          [
            ['Operation', genAi.operationName],
            ['Requested model', link('requestModel', genAi.requestModel)],
            ['Served model', link('servedModel', genAi.responseModel)],
            ['Provider', link('provider', genAi.providerName)],
            ['Streaming', request.streaming ? 'yes' : 'no'],
            ['Request id of the provider', request.upstreamRequestId],
          ],
        ]
      : [
          'MCP',
          [
            ['Method', mcp.method],
            ['Server', link('mcpTarget', mcp.target)],
            ['Item', link('mcpItem', mcp.item)],
          ],
        ],
    [
      'Result',
      [
        ['Status', request.httpStatus],
        ['Error code', link('errorCode', request.error)],
        ['Refused by', link('refusedBy', request.refusedBy)],
        ['Started', formatDateTime(request.startedAt)],
        ['Duration', formatDuration(request.durationMs)],
        ['First byte', request.firstByteMs === null ? null : formatDuration(request.firstByteMs)],
        ['Attempts', request.attempts],
        ['Response cache', request.cache],
        ['Complete', request.incomplete ? 'no' : 'yes'],
      ],
    ],
    [
      'Amounts',
      [
        ['Input tokens', tokens(usage.inputTokens, usage.estimated)],
        ['of which cached', some(usage.cachedInputTokens)],
        ['of which written to the cache', some(usage.cacheCreationInputTokens)],
        ['Output tokens', tokens(usage.outputTokens, usage.estimated)],
        ['of which reasoning', some(usage.reasoningTokens)],
        ['Cost', cost === null ? null : formatMoney(cost)],
        ['Price', request.costStatus],
        ['Corrects request', request.settles],
      ],
    ],
  ]
  return all.filter(([, facts]) => facts.some(([, value]) => value !== null && value !== ''))
}

function link(field: string, value: string | null, text: string | null = value): ReactNode {
  if (value === null || value === '') return null
  return (
    <Link href={requestsAddress({ [field]: value }, { range: '7d' })} className="text-accent hover:underline">
      {text}
    </Link>
  )
}

function tokens(count: number | null, estimated: boolean): ReactNode {
  if (count === null) return null
  return estimated ? `${formatNumber(count)} (estimated)` : formatNumber(count)
}

function some(count: number | null): ReactNode {
  return count === null || count === 0 ? null : formatNumber(count)
}
