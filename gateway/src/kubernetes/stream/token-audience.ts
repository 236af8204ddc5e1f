/** Audience of the service account tokens of proxies, which the controller demands. */
export const tokenAudience = 'tollgate'
