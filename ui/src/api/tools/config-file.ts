import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import { api } from '../client.ts'

/** The configuration file as it is, with its secrets. */
export type ConfigFile = {
  readonly text: string
  readonly revision: string
  readonly path: string
  readonly readOnly: boolean
  readonly reason?: string
}

/** A mistake in a text. Without a line it is about the whole. */
export type FileMistake = {
  readonly message: string
  readonly line?: number
  readonly column?: number
  readonly path: string
}

/** A part of the configuration that a text changes; secrets are masked. */
export type FileChange = { readonly path: string; readonly before?: unknown; readonly after?: unknown }

export type FileCheck = {
  readonly mistakes: readonly FileMistake[]
  readonly changes: readonly FileChange[]
  readonly needsRestart: boolean
  readonly revision: string
}

const path = '/api/config/file'

/** Each read is logged, because it returns secrets: it is not repeated when the window gets the focus. */
export function useConfigFile(): UseQueryResult<ConfigFile> {
  return useQuery({
    queryKey: ['config-file'],
    queryFn: ({ signal }) => api<ConfigFile>(path, { signal }),
    refetchOnWindowFocus: false,
    refetchOnMount: 'always',
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
}

export function fetchConfigFile(): Promise<ConfigFile> {
  return api<ConfigFile>(path)
}

/** Checks a text, without writing it. */
export function checkConfigFile(text: string, signal?: AbortSignal): Promise<FileCheck> {
  return api<FileCheck>(path, { method: 'PUT', query: { dryRun: true }, body: { text }, signal })
}

export function writeConfigFile(text: string, revision: string): Promise<FileCheck> {
  return api<FileCheck>(path, { method: 'PUT', body: { text }, revision })
}
