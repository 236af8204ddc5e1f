import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { api } from '../../../api/client.ts'
import type { RecordPage } from '../../../api/resources.ts'
import { lookOf } from '../../../pages/resources/kinds.ts'
import { titleOf } from '../../../save/requests.ts'
import type { PaletteEntry } from './static-entries.ts'

const minLength = 2
const maxRecords = 8
const pauseMs = 180

/** Pages of records; other kinds have the general editor. Policies are addressed by name. */
const places: Readonly<Record<string, string>> = {
  'llm.provider': '/llm/providers',
  'llm.model': '/llm/models',
  'llm.virtualModel': '/llm/virtual-models',
  'llm.apiKey': '/llm/keys',
  'llm.policy': '/llm/policies',
  'mcp.target': '/mcp/servers',
  'mcp.policy': '/mcp/policies',
  'traffic.gateway': '/traffic/gateways',
  'traffic.route': '/traffic/routes',
  'traffic.tcpRoute': '/traffic/tcp-routes',
  'ui.policy': '/settings/policies',
}

/** Records of all kinds that contain a text, found by the server. */
export function useFoundRecords(text: string): { entries: readonly PaletteEntry[]; busy: boolean } {
  const search = usePaused(text.trim())
  const { data, isFetching } = useQuery({
    queryKey: ['palette', search],
    queryFn: ({ signal }) =>
      api<RecordPage>('/api/config/resources', { query: { search, limit: maxRecords }, signal }),
    enabled: search.length >= minLength,
    retry: false,
  })
  if (text.trim().length < minLength) return { entries: [], busy: false }
  const entries = (data?.resources ?? []).map((record): PaletteEntry => {
    const { kind, id, name } = record
    const { noun, icon } = lookOf(kind)
    const place = places[kind] ?? `/resources/${kind}`
    const address = kind.endsWith('.policy') ? (name ?? id) : id
    return {
      kind: 'page',
      group: 'Records',
      label: titleOf(record),
      hint: noun,
      path: `${place}/${encodeURIComponent(address)}`,
      icon,
    }
  })
  return { entries, busy: isFetching || search !== text.trim() }
}

/** The text after a pause in typing. */
function usePaused(text: string): string {
  const [paused, setPaused] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), pauseMs)
    return () => clearTimeout(timer)
  }, [text])
  return paused
}
